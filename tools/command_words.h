// Which command a line means. Its words may stand behind options (`cinta config --config run.json train mlp`), and what
// to train may be said elsewhere: by --task, or by the "task" of a file of settings, so that a file can hold a whole
// run.
#pragma once
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace cinta::tools {

/// Brings the words that name the command, one within the other, to the front of `words`, and behind a `--` where
/// another command stands. `train` is followed by what it names, else by what --task, the file of --params, CINTA_TASK
/// or the file of --config names. Where there is a `usual_task`, it stands in for a task that nobody names, and `train`
/// for a command. Throws ValueError for a task that is none, and where a file or --task names another than the one that
/// decides.
void name_command(CLI::App& app, std::vector<std::string>& words, const std::string& usual_task = {});

}  // namespace cinta::tools
