// The place in a source that ends an error's message, for those whom it tells nothing.
#pragma once
#include <string>
#include <string_view>

namespace cinta {

/// The message of an error without the places in sources that `located` wrote there: a user's file is at fault, not the
/// line of ours that found out.
std::string without_places(std::string_view message);

}  // namespace cinta
