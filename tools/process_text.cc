#include "process_text.h"

#include <unistd.h>

#include <algorithm>

namespace heddle::tools {

std::string text_of_file(int file) {
  std::string text;
  char part[4096];
  ::lseek(file, 0, SEEK_SET);
  for (ssize_t got; (got = ::read(file, part, sizeof part)) > 0;)
    text.append(part, static_cast<size_t>(got));
  return text;
}

std::string last_words(const std::string& text) {
  std::string last;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.size(), text.find('\n', at));
    if (end > at) last = text.substr(at, end - at);
    if (last.starts_with("heddle bug")) return last;
    at = end + 1;
  }
  return last;
}

}  // namespace heddle::tools
