#include "base/escape.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

TEST(escape, ControlCharactersAreShown) {
  EXPECT_EQ(escaped("plain, größer"), "plain, größer");
  EXPECT_EQ(escaped("a\x1b[2Jb\x7f\n"), "a\\x1b[2Jb\\x7f\\x0a");
  EXPECT_EQ(escaped(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(escaped("\xc2\x9b[31m"), "\xc2\\x9b[31m");
  EXPECT_EQ(escaped("a\nb\tc\r", "\n\t"), "a\nb\tc\\x0d");
}

}  // namespace
}  // namespace heddle
