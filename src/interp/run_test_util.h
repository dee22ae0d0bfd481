// Shared by the tests: evaluating HLO text whose inputs are constants.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "hlo/text.h"
#include "hlo/verify.h"
#include "interp/interp.h"

namespace heddle::interp {

// `text` is a module, or the body of its entry. Null (and a failed test) if it is not valid.
inline std::unique_ptr<hlo::Module> module_of(std::string text) {
  if (text.find("ENTRY") == std::string::npos) text = "ENTRY e {" + text + "}";
  auto module = hlo::parse_module(text);
  EXPECT_TRUE(module) << module.error().message << "\nin " << text;
  if (!module) return nullptr;
  auto valid = hlo::verify(**module);
  EXPECT_TRUE(valid) << valid.error().message << "\nin " << text;
  return std::move(*module);
}

inline Result<tensor::Literal> evaluate_text(const std::string& text, const Options& options = {}) {
  auto module = module_of(text);
  if (module == nullptr) return user_error("not valid");
  EXPECT_EQ(unsupported(*module), std::vector<std::string>());
  return evaluate(*module, {}, options);
}

// The value of the root as HLO text, or "error: …".
inline std::string run(const std::string& text, const Options& options = {}) {
  auto result = evaluate_text(text, options);
  return result ? tensor::to_string(*result) : "error: " + result.error().message;
}

// "ROOT r = <result> <opcode>(a, b, …)<, attrs>" on constants: "f32[2] {1, 2}" each.
inline std::string run_op(const std::string& op, const std::string& result,
                          const std::vector<std::string>& operands, const std::string& attrs = "",
                          const Options& options = {}) {
  std::string body, names;
  for (size_t i = 0; i < operands.size(); ++i) {
    const size_t space = operands[i].find(' ');
    const std::string name = "p" + std::to_string(i);
    body += name + " = " + operands[i].substr(0, space) + " constant(" +
            operands[i].substr(space + 1) + ")\n";
    names += (i ? ", " : "") + name;
  }
  return run(body + "ROOT r = " + result + " " + op + "(" + names + ")" +
                 (attrs.empty() ? "" : ", " + attrs),
             options);
}

}  // namespace heddle::interp
