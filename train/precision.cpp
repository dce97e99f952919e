// Names of precisions, and the note in a checkpoint.
#include "cinta/train/precision.h"

#include <cstdio>

#include "cinta/train/loop.h"

namespace cinta::train {

std::optional<autograd::Autocast> parse_precision(std::string_view name, Where where) {
  if (name == "fp32") return {};
  if (name == "bf16") return autograd::Autocast{.low = Dtype::bf16};
  require(name == "fp16", "precision", where, "fp32, bf16 or fp16, given ", name);
  return autograd::Autocast{.low = Dtype::f16};
}

void PrecisionNote::on_train_begin(const Moment& now) {
  constexpr std::string_view key = "precision";
  const Dtype type = now.options.autocast ? now.options.autocast->low : Dtype::f32;
  const double saved = now.state.number(key);
  const bool known = saved == double(Dtype::f32) || saved == double(Dtype::f16) || saved == double(Dtype::bf16);
  const Dtype before = known ? static_cast<Dtype>(saved) : Dtype::f32;
  if (type == before) return;
  if (now.state.step > 0 && !now.options.quiet)
    std::fprintf(stderr,
                 "the checkpoint is of a run in %s, which goes on in %s; its weights and the optimizer's state are f32 "
                 "and are taken as they are\n",
                 std::string(name_of(before)).c_str(), std::string(name_of(type)).c_str());
  now.state.keep(key, static_cast<double>(type));
}

}  // namespace cinta::train
