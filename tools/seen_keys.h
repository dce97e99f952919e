// How much of a batch attention computes where its sequences are laid end to end.
#pragma once

namespace cinta::tools {

/// The part of a batch's tokens that are keys to a query, on average over all tokens and over those that a head reads,
/// which alone are queries in the last layer.
struct SeenKeys {
  double of_all = 1, of_some = 1;
};

}  // namespace cinta::tools
