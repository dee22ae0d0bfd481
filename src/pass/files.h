// Private to pass: dumps and reproducers on disk.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "hlo/module.h"

namespace heddle::pass {

// Errors: machine (cannot write).
Status write_text(const std::string& directory, const std::string& file, std::string_view text);

// "<dump_name>_000_input.hlo" and so on. Does nothing where `directory` is empty.
class Dump {
 public:
  Dump(std::string directory, std::string name)
      : directory_(std::move(directory)), name_(std::move(name)) {}
  Status write(const hlo::Module& module, std::string_view what);

 private:
  std::string directory_, name_;
  int number_ = 0;
};

// Writes the reproducer of `pass` and returns its path.
Result<std::string> write_reproducer(const std::string& directory, const hlo::Module& before,
                                     std::string_view pass, std::string_view error);

}  // namespace heddle::pass
