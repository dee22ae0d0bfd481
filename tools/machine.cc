#include "machine.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>

#include "api/heddle.h"

namespace heddle::tools {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

int64_t memory_bytes() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("MemTotal:")) return std::strtoll(line.c_str() + 9, nullptr, 10) * 1024;
  return 0;
}

std::string version_text() {
  return fmt::format("{}.{}.{}", HEDDLE_VERSION_MAJOR, HEDDLE_VERSION_MINOR, HEDDLE_VERSION_PATCH);
}

std::vector<std::string> words_of_this_process() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

}  // namespace heddle::tools
