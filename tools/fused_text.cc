#include "fused_text.h"

namespace heddle::tools {

namespace {

// From behind `mark` to the end of the name; empty where it does not stand there.
std::string name_behind(std::string_view line, std::string_view mark) {
  size_t at = line.find(mark);
  if (at == std::string_view::npos) return {};
  at += mark.size();
  if (at < line.size() && line[at] == '%') ++at;
  size_t end = at;
  while (end < line.size() && line[end] != ' ' && line[end] != ',' && line[end] != ')') ++end;
  return std::string(line.substr(at, end - at));
}

}  // namespace

FusedText::FusedText(std::string_view module) {
  std::string open;  // the computation that the line belongs to
  while (!module.empty()) {
    const size_t end = std::min(module.find('\n'), module.size());
    const std::string_view line = module.substr(0, end);
    module.remove_prefix(std::min(end + 1, module.size()));
    if (line.empty() || line == "}") {
      open.clear();
    } else if (line[0] != ' ') {
      open = line.starts_with("ENTRY") ? "ENTRY" : name_behind(line, "");
      continue;
    }
    if (open.empty()) continue;
    computations_[open] += std::string(line.substr(2)) + "\n";
    if (const std::string called = name_behind(line, "calls="); !called.empty()) {
      const bool root = line.starts_with("  ROOT ");
      called_[name_behind(line.substr(root ? 7 : 2), "")] = called;
    }
  }
}

std::string FusedText::of(const std::string& fusion) const {
  std::string text;
  if (const auto found = called_.find(fusion); found != called_.end()) add(found->second, &text);
  return text;
}

void FusedText::add(const std::string& computation, std::string* text) const {
  const auto found = computations_.find(computation);
  if (found == computations_.end()) return;
  *text += found->second;
  for (size_t at = 0; at < found->second.size();) {
    const size_t end = found->second.find('\n', at);
    const std::string called =
        name_behind(std::string_view(found->second).substr(at, end - at), "calls=");
    if (!called.empty()) {
      *text += "\n" + called + ":\n";
      add(called, text);
    }
    at = end + 1;
  }
}

}  // namespace heddle::tools
