// The operators of each kernel, from the text of a module after fusion.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace heddle::tools {

class FusedText {
 public:
  explicit FusedText(std::string_view module);
  // The computation of the fusion of that name, behind it those of fusions inside; empty: none.
  std::string of(const std::string& fusion) const;

 private:
  void add(const std::string& computation, std::string* text) const;

  std::map<std::string, std::string, std::less<>> computations_;  // text, by name
  std::map<std::string, std::string, std::less<>> called_;        // by name of the fusion
};

}  // namespace heddle::tools
