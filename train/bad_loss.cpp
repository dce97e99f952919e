// The hunt comes after the fact, so that training pays nothing for it.
#include "cinta/train/bad_loss.h"

#include "cinta/autograd/anomaly.h"
#include "cinta/autograd/tape.h"

namespace cinta::train {

void report_bad_loss(double loss, int64_t step, const Callback<Forward()>& forward, Where where) {
  const std::string what = join("the loss of step ", step, " is ", loss, ": ");
  try {
    const autograd::AnomalyScope hunt;
    autograd::backward(forward().loss_sum);
  } catch (const Error& found) {
    Message message = located("train", join(what, found.text()), where);
    message.place = found.what() + found.text().size() + message.place;  // where the op was called, too
    throw ValueError(message);
  }
  throw ValueError(located("train",
                           what + "with the weights of now every result of its batch is a number; --detect_anomaly " +
                               "looks from the start",
                           where));
}

void require_finite_weights(const optim::Optimizer& optimizer, int64_t step, Where where) {
  const optim::Range* bad = optim::first_not_finite(optimizer.units());
  require(!bad, "train", where, "after step ", step, " the weight ", bad ? bad->parameter.name : "",
          " holds NaN or infinity; it is not saved");
}

}  // namespace cinta::train
