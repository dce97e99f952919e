// The classifier's loss, its evaluation and its files.
#include "cinta/train/classifier.h"

#include <nlohmann/json.hpp>

#include "cinta/autograd/mode.h"
#include "cinta/data/file.h"
#include "cinta/data/strict_json.h"
#include "cinta/ops/loss.h"
#include "cinta/train/checkpoint_directory.h"

namespace cinta::train {

Forward classify(const Classifier& classifier, const std::vector<float>& inputs, const std::vector<int64_t>& labels,
                 Device device) {
  const int64_t rows = static_cast<int64_t>(labels.size());
  const Tensor x = from_values(inputs, {rows, classifier.sizes.front()}, device),
               target = from_values(labels, {rows}, device);
  const Tensor logits = (*classifier.mlp)(x);
  return {cross_entropy(logits, target, {.reduction = Reduction::sum}), count_correct(logits, target)};
}

MetricFields evaluate(const Classifier& classifier, const data::Examples& examples, Device device) {
  autograd::NoGrad off;
  classifier.mlp->train(false);
  const Forward all = classify(classifier, examples.inputs_f32(), examples.labels, device);
  classifier.mlp->train(true);
  const double count = static_cast<double>(examples.count);
  return {{"eval_loss", item(all.loss_sum) / count}, {"eval_accuracy", item(all.correct) / count}};
}

void Classifier::save(CheckpointWriter& writer) const {
  models::write_tensors(mlp->named_tensors(), writer.add("model.safetensors"));
  const nlohmann::ordered_json config = {{"model_type", "mlp"},
                                         {"sizes", sizes},
                                         {"activation", "relu"},
                                         {"input_mean", standardizer.mean},
                                         {"input_deviation", standardizer.deviation}};
  writer.add("config.json").write_text(config.dump(2) + "\n");
}

Classifier read_classifier(const std::string& directory, Device device, Where where) {
  const std::string path = directory + "/config.json";
  const nlohmann::json in = data::parse_json_object(data::read_file(path), "config", path, where);
  require<FileError>(in.value("model_type", nlohmann::json()) == "mlp", "config", where, path,
                     ": not the configuration of an MLP");
  require<FileError>(in.value("activation", nlohmann::json()) == "relu", "config", where, path,
                     ": activation is \"relu\"");
  auto numbers = [&](const char* key, size_t least, auto allowed) {
    require<FileError>(in.contains(key) && in[key].is_array() && in[key].size() >= least, "config", where, path, ": ",
                       key, " is a list of at least ", least, " numbers");
    for (const auto& one : in[key])
      require<FileError>(allowed(one), "config", where, path, ": ", key, " holds ", one.dump());
    return in[key];
  };
  auto is_size = [](const nlohmann::json& one) { return one.is_number_integer() && one > 0 && one < 1 << 24; };
  auto is_number = [](const nlohmann::json& one) { return one.is_number(); };
  Classifier out;
  numbers("sizes", 2, is_size).get_to(out.sizes);
  numbers("input_mean", 1, is_number).get_to(out.standardizer.mean);
  numbers("input_deviation", 1, [](const nlohmann::json& one) {
    return one.is_number() && one > 0;
  }).get_to(out.standardizer.deviation);
  const size_t features = static_cast<size_t>(out.sizes.front());
  require<FileError>(out.standardizer.mean.size() == features && out.standardizer.deviation.size() == features,
                     "config", where, path, ": input_mean and input_deviation have ", out.standardizer.mean.size(),
                     " and ", out.standardizer.deviation.size(), " numbers, for ", features, " features");
  out.mlp = std::make_shared<models::Mlp>(out.sizes, 0, Activation::relu, device, where);
  return out;
}

std::pair<Classifier, models::LoadReport> load_classifier(const std::string& directory, Device device, Where where) {
  Classifier out = read_classifier(directory, device, where);
  models::LoadReport report = models::load_weights(*out.mlp, directory, {}, {}, where);
  return {std::move(out), std::move(report)};
}

}  // namespace cinta::train
