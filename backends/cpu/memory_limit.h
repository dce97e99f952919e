// How much memory this process may use: what the machine has, or what a container leaves of it.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>

namespace cinta {

/// Bytes that this process may use: the machine's memory, or the part of it that its control group (a container, a
/// service, a job of a cluster) may use, and what the machine swaps to. As much as can be counted where the system does
/// not say.
int64_t memory_limit();
/// For tests: what memory_limit() says from now on; without a value, what the system says.
void pretend_memory_limit(std::optional<int64_t> bytes);

/// The least bytes that the control groups of this process allow, of both versions, by the files below `root`, which is
/// / but for tests; as much as can be counted where they allow all. See cgroups(7).
int64_t limit_of_control_groups(const std::filesystem::path& root);

}  // namespace cinta
