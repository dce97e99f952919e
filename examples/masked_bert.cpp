// Trains a small BERT to fill in masked words of the text files below a folder: masked_bert FOLDER [STEPS].
#include <cinta/cinta.h>

#include <cstdio>
#include <cstdlib>

using namespace cinta;

int main(int argc, char** argv) {
  if (argc < 2) return std::puts("usage: masked_bert FOLDER [STEPS]"), 2;
  auto say = [](const std::string& text) { std::puts(text.c_str()); };
  data::MaskedCorpus corpus = data::prepare_corpus(argv[1], {.vocab_size = 4096, .length = 64}, say);
  models::BertConfig config = models::BertConfig::named("tiny");
  config.max_position_embeddings = 64;
  train::MaskedTask task(corpus, config, /*batch_size=*/32, /*seed=*/0);
  train::RunResult result = train::run(task,
                                       {.output_dir = "runs/masked_bert",
                                        .max_steps = argc > 2 ? std::atoi(argv[2]) : 1000,
                                        .optimizer = {.rate = 2e-3},
                                        .schedule = {.warmup = 100},
                                        .overwrite = true},
                                       {{"task", "masked_bert"}});
  std::printf("held-out loss %.3f nats, %.1f %% of the masked words found; files in %s\n",
              train::number(result.evaluation, "eval_loss"),
              100 * train::number(result.evaluation, "eval_masked_accuracy"), result.checkpoint.c_str());
}
