// Long texts of a page (code, diffs), each once: they are shown on demand, so that a page holds
// them compressed, in pieces that are unpacked when one of their texts is asked for.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <unordered_map>
#include <vector>

namespace heddle::tools {

class PageTexts {
 public:
  // The text's number; -1 of the empty one. What is not UTF-8 is replaced when it is written.
  int64_t add(const std::string& text);

  nlohmann::ordered_json plain() const;  // all of them, by number
  // What the page needs to find them: for each piece the number of its first text.
  nlohmann::ordered_json places() const;
  // The pieces, each a JSON list of texts by zlib, in base64.
  std::vector<std::string> packed() const;

 private:
  std::vector<size_t> beginnings() const;  // of the pieces, by number of their first texts

  std::vector<std::string> texts_;
  std::unordered_map<std::string, int64_t> numbers_;
};

}  // namespace heddle::tools
