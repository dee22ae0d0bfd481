// Requests from several clients at once, or at a given rate: bench --clients, --rate.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "handles.h"
#include "tensor/literal.h"

namespace heddle::tools {

class CommandLine;

struct LoadChoices {
  std::optional<int64_t> clients;
  std::optional<double> rate;

  void declare(CommandLine& line);
  bool given() const { return clients || rate; }
  Status check() const;  // error (user): numbers out of range
};

// Times of all requests, in milliseconds.
struct LoadResult {
  int64_t clients = 1;
  double rate = 0;  // requests a second; 0: each client sends the next when one is done
  double seconds = 0;
  int64_t left = 0;  // requests that had arrived and that nobody had taken at the end
  std::vector<double> total, queue, run;

  double throughput() const { return static_cast<double>(run.size()) / seconds; }
};

// Each client is a thread with a context of the program, all on the same inputs. With a rate,
// requests arrive at random intervals (a Poisson process of `seed`) and wait in one queue until a
// client is free. Ends after `seconds`, or after `requests`.
Result<LoadResult> run_load(heddle_program* program, std::vector<tensor::Literal>& inputs,
                            const LoadChoices& choices, double seconds,
                            std::optional<int64_t> requests, uint64_t seed);

// Lines for the terminal; the JSON of "load".
std::string to_string(const LoadResult& load);
nlohmann::ordered_json to_json(const LoadResult& load);

}  // namespace heddle::tools
