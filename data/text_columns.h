// Which column of a table of texts, or key of a JSON object, is what: decided here for every format.
#pragma once
#include <string>
#include <vector>

namespace cinta::data {

/// Places among the columns; -1: there is none.
struct TextColumns {
  int first = -1, second = -1, label = -1;
};

/// By name, in capitals or not, the blanks around it passed over. Of several known names the one that
/// known_column_names() has first is taken; `sentence` is the second text of a `question`.
TextColumns columns_by_name(const std::vector<std::string>& names);

/// The names that are known, for a message: of the (first) text, of the label, and of all.
std::string known_text_names();
std::string known_label_names();
std::string known_column_names();

/// What is read, for a message: "text: 'review', label: 'label'".
std::string read_columns(const TextColumns& columns, const std::vector<std::string>& names);
/// The names of the columns that are not read.
std::vector<std::string> unread_columns(const TextColumns& columns, const std::vector<std::string>& names);

}  // namespace cinta::data
