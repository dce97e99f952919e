// OpenMP's runtime reads its limit once, before main begins; only a program that starts anew can change it.
#include "tools/brief_waiting.h"

#include <unistd.h>

#include <cstdlib>

namespace cinta::tools {

void wait_briefly(char** argv) {
  // By default libgomp spins for milliseconds. Where another program has one of the cores, that keeps busy the core
  // which the thread that is waited for could run on: a step on two cores took 8 times as long, with this limit 2.2
  // times. Without such a neighbour nothing is lost, since the next call comes sooner.
  constexpr const char *limit = "GOMP_SPINCOUNT", *policy = "OMP_WAIT_POLICY", *turns = "5000";
  if (std::getenv(limit) || std::getenv(policy)) return;
  if (::setenv(limit, turns, 0) == 0) ::execv("/proc/self/exe", argv);  // where it fails, the wait is a long one
}

}  // namespace cinta::tools
