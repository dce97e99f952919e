// What is made once: the model and the order of the rows.
#include "cinta/train/classify_task.h"

#include "cinta/models/model_file.h"

namespace cinta::train {

ClassifyTask::ClassifyTask(data::Split split, data::Standardizer standardizer, const std::vector<int64_t>& hidden,
                           int64_t batch_size, uint64_t seed, Device device, Where where)
    : split_(std::move(split)), batch_size_(batch_size), device_(device) {
  classifier_.sizes = {split_.train.features};
  classifier_.sizes.insert(classifier_.sizes.end(), hidden.begin(), hidden.end());
  classifier_.sizes.push_back(split_.train.classes);
  classifier_.standardizer = std::move(standardizer);
  classifier_.mlp = std::make_shared<models::Mlp>(classifier_.sizes, seed, Activation::relu, device, where);
  batches_ = std::make_shared<data::ExampleBatches>(split_.train, batch_size, seed, where);
}

MetricFields ClassifyTask::evaluate_until(StopFlag) { return train::evaluate(classifier_, split_.test, device_); }

std::vector<std::string> ClassifyTask::evaluation_names() const { return {"eval_loss", "eval_accuracy"}; }

models::LoadReport ClassifyTask::load(const std::string& directory) {
  return models::load_weights(*classifier_.mlp, directory);
}

}  // namespace cinta::train
