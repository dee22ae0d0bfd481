#include "rivals.h"

#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <nlohmann/json.hpp>

#include "statistics.h"

namespace heddle::tools {
namespace {

constexpr double kRoundMs = 20;  // short runs are gathered into rounds of about this length
constexpr double kWarmupMs = 200;

double processor_ms() {  // of all threads of this process
  timespec now;
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

}  // namespace

int64_t runs_of_round(double run_ms) {
  return std::clamp<int64_t>(static_cast<int64_t>(kRoundMs / std::max(run_ms, 1e-6)), 1, 2000);
}

void fall_asleep() {
  for (int tries = 0; tries < 200; ++tries) {
    const double before = processor_ms();
    ::usleep(10000);
    if (processor_ms() - before < 0.5) return;
  }
}

Status Rival::round(double ours) {
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<double> these, peer->run(runs));
  double theirs = 0;
  for (double ms : these) theirs += ms / static_cast<double>(these.size());
  times.insert(times.end(), these.begin(), these.end());
  ratios.push_back(theirs / ours);
  return {};
}

nlohmann::ordered_json Rival::json() const {
  const Statistics ratio = statistics_of(ratios);
  nlohmann::ordered_json one;
  one["name"] = peer->name();
  one["latency_ms"] = to_json(statistics_of(times));
  one["ratio"] = {{"median", ratio.median}, {"min", ratio.min}, {"max", ratio.max}};
  one["rounds"] = ratios.size();
  return one;
}

Result<std::vector<Rival>> start_rivals(const std::vector<std::string>& kinds, Peer::Setup setup) {
  std::vector<Rival> rivals;
  for (const std::string& kind : kinds) {
    setup.kind = kind;
    Rival rival;
    HEDDLE_ASSIGN_OR_RETURN(rival.peer, Peer::start(setup));
    double fastest = std::numeric_limits<double>::infinity(), spent = 0;
    for (int64_t runs = 1; spent < kWarmupMs; runs *= 2) {
      HEDDLE_ASSIGN_OR_RETURN(const std::vector<double> times, rival.peer->run(runs));
      for (double ms : times) {
        fastest = std::min(fastest, ms);
        spent += ms;
      }
    }
    rival.runs = runs_of_round(fastest);
    rivals.push_back(std::move(rival));
  }
  return rivals;
}

Status write_inputs_of_rivals(const std::string& path, const heddle_model* model,
                              const std::vector<tensor::Literal>& inputs,
                              const tensor::NamedLiterals& given,
                              const std::vector<std::string>& fixed) {
  tensor::NamedLiterals named;
  for (size_t i = 0; i < inputs.size(); ++i)
    named.emplace_back(input_of(model, static_cast<int64_t>(i)).name, inputs[i]);
  for (const auto& value : given)
    if (std::find(fixed.begin(), fixed.end(), value.first) != fixed.end()) named.push_back(value);
  return tensor::write_npz(path, named);
}

}  // namespace heddle::tools
