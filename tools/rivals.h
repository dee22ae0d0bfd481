// Other engines in turn with ours: --vs.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "handles.h"
#include "peer.h"
#include "tensor/npz.h"

namespace heddle::tools {

struct Rival {
  std::unique_ptr<Peer> peer;
  int64_t runs = 1;                   // to a round
  std::vector<double> times, ratios;  // ms of every run; theirs over ours, by round

  // `ours`: ms of one run of ours in this round.
  Status round(double ours);
  nlohmann::ordered_json json() const;  // as `versus` of bench --json
};

// Runs to a round, from the time of one.
int64_t runs_of_round(double run_ms);
// Returns when our workers no longer wait in a spin, and after two seconds in any case: the peer's
// turn is then quiet.
void fall_asleep();

// Peers of these kinds, warm. `setup`: of each but for the kind. Errors: Peer::start's.
Result<std::vector<Rival>> start_rivals(const std::vector<std::string>& kinds, Peer::Setup setup);
// What they read: the model's inputs; of those that `fixed` names, which are part of our model, the
// values that were given.
Status write_inputs_of_rivals(const std::string& path, const heddle_model* model,
                              const std::vector<tensor::Literal>& inputs,
                              const tensor::NamedLiterals& given,
                              const std::vector<std::string>& fixed);

}  // namespace heddle::tools
