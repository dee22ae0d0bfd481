#include "breakdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "report.h"

namespace heddle::tools {

bool is_product(std::string_view operators) {
  for (const std::string_view name : {"dot", "convolution"}) {
    for (size_t at = operators.find(name); at != std::string_view::npos;
         at = operators.find(name, at + 1)) {
      const size_t end = at + name.size();
      if ((at == 0 || operators[at - 1] == ' ') &&
          (end == operators.size() || operators[end] == ','))
        return true;
    }
  }
  return false;
}

void Breakdown::add(std::string_view kind, std::string_view operators, double launches, double ms) {
  // The commands in a loop or a branch are added themselves: what is left is its own stepping.
  Part& part = kind == "host" || kind == "loop" || kind == "branch"          ? host_
               : kind == "copy" || kind == "concatenate" || kind == "update" ? copies_
               : is_product(operators)                                       ? products_
                                                                             : memory_;
  part.launches += launches;
  part.ms += ms;
}

double Breakdown::host_ms() const {
  return std::max(host_.ms, run_ms_ - products_.ms - memory_.ms - copies_.ms);
}

void Breakdown::print() const {
  const auto line = [&](const char* name, double ms, double launches, const char* what) {
    fmt::print("{:>6} {:>10} {:>5.1f}% {:>6.0f}  {}\n", name, ms_text(ms),
               run_ms_ > 0 ? ms / run_ms_ * 100 : 0, launches, what);
  };
  fmt::print("{:>6} {:>10} {:>6} {:>6}\n", "", "time", "share", "count");
  line("CPU", host_ms(), host_.launches, "on the host, between the kernels");
  line("Math", products_.ms, products_.launches, "kernels with a product or a convolution");
  line("Mem", memory_.ms, memory_.launches, "other kernels: bound by memory");
  line("Cpy", copies_.ms, copies_.launches, "copies");
  line("E2E", run_ms_, host_.launches + products_.launches + memory_.launches + copies_.launches,
       "wall time of one run");
}

nlohmann::ordered_json Breakdown::json() const {
  nlohmann::ordered_json json;
  const auto part = [&](const char* name, double ms, double launches) {
    json[name] = {{"ms", ms}, {"count", launches}};
  };
  part("cpu", host_ms(), host_.launches);
  part("math", products_.ms, products_.launches);
  part("mem", memory_.ms, memory_.launches);
  part("cpy", copies_.ms, copies_.launches);
  part("e2e", run_ms_, host_.launches + products_.launches + memory_.launches + copies_.launches);
  return json;
}

}  // namespace heddle::tools
