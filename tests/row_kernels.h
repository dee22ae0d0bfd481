// The memory-bound rows of bench/rows with the small extents that they name, for tests.
#pragma once

#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "root_folder.h"

namespace heddle {

inline std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The rest of the line that starts with `mark`; empty where there is none.
inline std::string line_after(const std::string& text, const std::string& mark) {
  const size_t at = text.find("\n" + mark);
  if (at == std::string::npos) return {};
  const size_t begin = at + 1 + mark.size();
  return text.substr(begin, text.find('\n', begin) - begin);
}

inline std::map<std::string, std::string> small_extents(const std::string& text) {
  std::map<std::string, std::string> extents;
  std::istringstream words(line_after(text, "// small: "));
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    extents[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return extents;
}

// Every whole word that is a key becomes its value.
inline std::string substituted(const std::string& text,
                               const std::map<std::string, std::string>& words) {
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  std::string result;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && is_word(text[end])) ++end;
    const std::string word = text.substr(at, end - at);
    const auto found = words.find(word);
    result += found == words.end() ? word : found->second;
    if (end < text.size()) result += text[end++];
    at = end;
  }
  return result;
}

// By name: l1, l2, …
inline std::map<std::string, std::string> row_files() {
  std::map<std::string, std::string> found;
  for (const char* folder : {"/bench/rows", "/tests/testdata/rows"})
    for (const auto& entry : std::filesystem::directory_iterator(root_folder() + folder))
      if (entry.path().extension() == ".hlo") found[entry.path().stem()] = entry.path();
  return found;
}

}  // namespace heddle
