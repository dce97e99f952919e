// Losses. Those over rows give one number a row, and their sum or mean. cross_entropy gives f32 losses of
// low-precision logits; the others are made of ops, and give the type that these do.
#pragma once
#include "cinta/core/tensor.h"

namespace cinta {

enum class Reduction { mean, sum, none };

struct CrossEntropyOptions {
  int64_t ignore_index = -100;  ///< rows with this label count for nothing
  double label_smoothing = 0;   ///< in [0, 1]: share of the target that is spread over all classes
  Reduction reduction = Reduction::mean;
};

/// -sum(target * log_softmax(logits)) for logits[..,V] and labels[..] (i64). The mean is over the rows that are not
/// ignored (0 when there are none). A label outside [0,V) is found on the device and thrown as a ValueError: at
/// once by devices that share the host's memory, by others at the host's next read (Context::check_status).
Tensor cross_entropy(const Tensor& logits, const Tensor& labels, const CrossEntropyOptions& options = {},
                     Where where = Where::current());
/// How many labels are not `ignore_index`, as a tensor of one element on their device: what sums of losses are divided
/// by.
Tensor count_items(const Tensor& labels, int64_t ignore_index = -100, Dtype dtype = Dtype::f32,
                   Where where = Where::current());

/// In how many rows of logits[..,V] the largest is the one that labels[..] (i64) names, as an f32 tensor of one element
/// on their device. An ignored label is never met.
Tensor count_correct(const Tensor& logits, const Tensor& labels, Where where = Where::current());

/// (prediction - target)^2; the mean is over all elements.
Tensor mse(const Tensor& prediction, const Tensor& target, Reduction reduction = Reduction::mean,
           Where where = Where::current());
/// -t log sigmoid(x) - (1 - t) log sigmoid(-x) for targets t in [0,1], without overflow; the mean is over all elements.
Tensor bce_with_logits(const Tensor& logits, const Tensor& target, Reduction reduction = Reduction::mean,
                       Where where = Where::current());
/// Kullback-Leibler divergence sum(p (log p - log q)) over the last dimension, from the logarithms of both (log_softmax
/// gives them); a class with p = 0 adds nothing. The mean is over rows.
Tensor kl_div(const Tensor& log_p, const Tensor& log_q, Reduction reduction = Reduction::mean,
              Where where = Where::current());

}  // namespace cinta
