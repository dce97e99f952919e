// When the exponents of a run are looked at, and the files they are written to.
#include <filesystem>
#include <utility>

#include "cinta/autograd/mode.h"
#include "cinta/data/atomic_file.h"
#include "cinta/train/exponents.h"
#include "cinta/train/loop.h"

namespace cinta::train {
namespace {

constexpr const char *chart_name = "/exponents.svg", *json_name = "/exponents.json";

}  // namespace

void ExponentReport::on_train_begin(const Moment& now) {
  begun_after_ = now.state.step;
  watch_.reset();
  steps_.clear();
  const std::string file = now.options.output_dir + json_name;
  if (now.options.output_dir.empty() || begun_after_ == 0 || !std::filesystem::exists(file)) return;
  steps_ = read_exponents(file);
  std::erase_if(steps_, [&](const ExponentStep& one) { return one.step > begun_after_; });  // to be done again
}

void ExponentReport::on_step_begin(const Moment& now) {
  if (!now.options.output_dir.empty() && steps_.empty()) watch_ = std::make_shared<ExponentWatch>(now.task.model());
}

void ExponentReport::on_pre_optimizer_step(const Moment& now) {
  if (!watch_) return;
  steps_.push_back({now.state.step + 1, watch_->take()});
  watch_.reset();
  write(now.options.output_dir);
}

void ExponentReport::on_train_end(const Moment& now) {
  const int64_t last = now.state.step;
  if (last == begun_after_ || steps_.empty() || steps_.front().step == last) return;
  const autograd::Scoped alone(&autograd::Mode::observer, static_cast<autograd::Observer*>(nullptr));  // no step's work
  ExponentWatch watch(now.task.model());
  now.repeat_step();
  steps_.erase(steps_.begin() + 1, steps_.end());
  steps_.push_back({last, watch.take()});
  write(now.options.output_dir);
}

void ExponentReport::write(const std::string& directory) const {
  for (const auto& [name, text] : {std::pair{chart_name, svg_of(steps_)}, {json_name, json_of(steps_)}}) {
    data::AtomicFile file(directory + name);
    file.write_text(text);
    file.commit();
  }
}

}  // namespace cinta::train
