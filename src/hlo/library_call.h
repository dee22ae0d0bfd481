// The custom call for a call into a vendor library. It wraps a computation, which defines its
// meaning and whose parameters are the call's operands: A, B, and optionally a bias. An annotation
// has the library, the number of tasks, the flops, and the operation in the library's own text form
// (library/operation.h).
#pragma once

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "hlo/module.h"

namespace heddle::hlo {

inline constexpr std::string_view kLibraryCall = "heddle.library";
inline constexpr std::string_view kLibraryAnnotation = "backend_config";

struct LibraryCall {
  std::string library, operation;
  int64_t tasks = 1, flops = 0;
};

inline std::string annotation_text(const LibraryCall& call) {
  return '"' + call.library + ' ' + std::to_string(call.tasks) + ' ' + std::to_string(call.flops) +
         ' ' + call.operation + '"';
}

// None: another instruction, or the annotation does not have this form.
inline std::optional<LibraryCall> library_call(const Instr& instr) {
  if (!instr.is(Opcode::custom_call) || instr.called().size() != 1 ||
      instr.attrs_as<CustomCallAttrs>().custom_call_target != kLibraryCall)
    return std::nullopt;
  for (const auto& [key, value] : instr.annotations()) {
    if (key != kLibraryAnnotation) continue;
    std::string_view text = value;
    if (text.size() < 2 || text.front() != '"' || text.back() != '"') return std::nullopt;
    text = text.substr(1, text.size() - 2);
    auto take = [&] {
      const size_t end = std::min(text.find(' '), text.size());
      const std::string_view word = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      return word;
    };
    auto number = [&](int64_t* to) {
      const std::string_view word = take();
      const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), *to);
      return error == std::errc() && end == word.data() + word.size() && *to >= 0;
    };
    LibraryCall call;
    call.library = take();
    if (!number(&call.tasks) || !number(&call.flops) || call.tasks < 1) return std::nullopt;
    call.operation = text;
    return call;
  }
  return std::nullopt;
}

}  // namespace heddle::hlo
