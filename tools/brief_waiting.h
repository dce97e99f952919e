// How long the threads of the team wait for each other before they sleep.
#pragma once

namespace cinta::tools {

/// Starts this program anew with a short wait, unless the environment says how long it is. Call it first in main.
void wait_briefly(char** argv);

}  // namespace cinta::tools
