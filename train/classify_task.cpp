// The MLP's forward, its evaluation and its files.
#include "cinta/train/classify_task.h"

#include <nlohmann/json.hpp>

#include "cinta/autograd/mode.h"
#include "cinta/models/model_file.h"
#include "cinta/ops/loss.h"
#include "cinta/train/checkpoint_directory.h"

namespace cinta::train {

ClassifyTask::ClassifyTask(data::Split split, const std::vector<int64_t>& hidden, int64_t batch_size, uint64_t seed,
                           Device device, Where where)
    : split_(std::move(split)), sizes_{split_.train.features}, batch_size_(batch_size), device_(device) {
  sizes_.insert(sizes_.end(), hidden.begin(), hidden.end());
  sizes_.push_back(split_.train.classes);
  mlp_ = std::make_unique<models::Mlp>(sizes_, seed, Activation::relu, device, where);
  batches_ = std::make_unique<data::ExampleBatches>(split_.train, batch_size, seed, where);
}

Forward ClassifyTask::forward(const std::vector<float>& inputs, const std::vector<int64_t>& labels) {
  const int64_t rows = static_cast<int64_t>(labels.size());
  const Tensor x = from_values(inputs, {rows, split_.train.features}, device_),
               target = from_values(labels, {rows}, device_);
  const Tensor logits = (*mlp_)(x);
  return {cross_entropy(logits, target, {.reduction = Reduction::sum}), count_correct(logits, target)};
}

Forward ClassifyTask::forward(const data::Batch& batch) { return forward(batch.inputs, batch.labels); }

MetricFields ClassifyTask::evaluate() {
  autograd::NoGrad off;
  mlp_->train(false);
  const Forward all = forward(split_.test.inputs, split_.test.labels);
  mlp_->train(true);
  const double count = static_cast<double>(split_.test.count);
  return {{"eval_loss", item(all.loss_sum) / count}, {"eval_accuracy", item(all.correct) / count}};
}

void ClassifyTask::save(CheckpointWriter& writer) {
  std::vector<Tensor> hold;
  data::write_safetensors(writer.add("model.safetensors"), models::file_tensors(mlp_->named_tensors(), hold));
  const nlohmann::ordered_json config = {{"model_type", "mlp"}, {"sizes", sizes_}, {"activation", "relu"}};
  const std::string text = config.dump(2) + "\n";
  writer.add("config.json").write(text.data(), text.size());
}

void ClassifyTask::load(const std::string& directory) { models::load_weights(*mlp_, directory + "/model.safetensors"); }

}  // namespace cinta::train
