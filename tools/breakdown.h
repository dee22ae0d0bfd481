// Where a run's time goes in five numbers, as FusionStitching's evaluation tells it (its table 2):
// products, what is bound by memory, copies, the host, and all of it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace heddle::tools {

// Whether a command with these operators ("add, dot") has a product or a convolution.
bool is_product(std::string_view operators);

class Breakdown {
 public:
  // A command, or several alike: `kind` and `operators` as in heddle_command_profile, launches and
  // milliseconds of one run.
  void add(std::string_view kind, std::string_view operators, double launches, double ms);
  // One run from outside: what the commands do not account for is the host's.
  void set_run(double ms) { run_ms_ = ms; }

  void print() const;
  nlohmann::ordered_json json() const;

 private:
  struct Part {
    double launches = 0, ms = 0;
  };
  double host_ms() const;

  Part products_, memory_, copies_, host_;
  double run_ms_ = 0;
};

}  // namespace heddle::tools
