// For tests of single fusions written as HLO text.
#pragma once

#include <gtest/gtest.h>

#include "compiler/fusion_check.h"
#include "hlo/text.h"

namespace heddle::compiler {

inline std::unique_ptr<hlo::Module> parsed(const std::string& text) {
  auto module = hlo::parse_module(text);
  EXPECT_TRUE(module.has_value()) << (module ? "" : module.error().message) << text;
  return std::move(*module);
}

// Expects results equal to the reference, and a schedule whose text round-trips.
inline FusionCheck proved(const std::string& text, const char* target_name, uint64_t seed,
                          int64_t reduction_length) {
  auto target = target::find_target(target_name);
  FusionCheck check = check_fusion(*parsed(text), *target, seed, reduction_length);
  EXPECT_EQ(check.failure, "") << text << check.text;
  if (!check.placed.decision) return check;
  const std::string printed = to_string(check.placed.schedule, check.placed.graph);
  auto again = stage::parse_schedule(printed, check.placed.graph);
  EXPECT_TRUE(again.has_value()) << (again ? "" : again.error().message);
  if (again) {
    EXPECT_EQ(to_string(*again, check.placed.graph), printed);
  }
  return check;
}

}  // namespace heddle::compiler
