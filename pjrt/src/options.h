// How programs are compiled: the options of a client, and those of one compilation above them.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "heddle/heddle.h"

namespace heddle::pjrt {

// Members of heddle_compile_options by name, as text.
class Options {
 public:
  // Throws: no such option, no number where one is wanted.
  void set(const std::string& name, const std::string& value);
  // Refers to the texts here.
  heddle_compile_options for_heddle() const;
  std::string text() const;  // "level=O1 threads=2"

 private:
  std::map<std::string, std::string> values_;
};

// What is read of a serialised xla.CompileOptionsProto.
struct CompileRequest {
  int64_t replicas = 1, partitions = 1;
  bool tupled_parameters = false;
  std::map<std::string, std::string> overrides;  // env_option_overrides: jit's compiler_options
};
// Throws where it is no such message.
CompileRequest read_compile_options(std::string_view bytes);
// The options of a compilation. XLA's own (xla_…) mean nothing here and are left out. Throws for
// several devices and for what is no option.
Options options_for(const Options& client, const CompileRequest& request);

}  // namespace heddle::pjrt
