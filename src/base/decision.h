// Decision: yes, or no with a code and a reason. Code that may refuse something (a fusion, a
// schedule, a candidate) returns one of these instead of a bare bool; `heddle explain` prints it.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

namespace heddle {

class Decision {
 public:
  static Decision yes() { return Decision(); }

  // no("space-full", "scratch wants {} bytes, {} fit", want, have). `code` is a fixed word.
  template <typename... Args>
  static Decision no(const char* code, fmt::format_string<Args...> format, Args&&... args) {
    Decision decision;
    decision.code_ = code;
    decision.reason_ = fmt::format(format, std::forward<Args>(args)...);
    return decision;
  }

  explicit operator bool() const { return code_.empty(); }
  const std::string& code() const { return code_; }      // empty for yes
  const std::string& reason() const { return reason_; }  // one line

 private:
  Decision() = default;
  std::string code_;
  std::string reason_;
};

}  // namespace heddle
