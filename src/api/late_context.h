// Private to late: runs of a program whose shapes are known late (late.h).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "api/late_program.h"

namespace heddle::api {

class LateContext : public Context {
 public:
  LateContext(std::shared_ptr<LateProgram> program,
              std::shared_ptr<runtime::Cancellation> cancellation);
  Status bind_input(int64_t number, const void* data) override;
  Status bind_output(int64_t number, void* data) override;
  Status set_input_shape(int64_t number, const std::vector<int64_t>& dims) override;
  Status prepare() override;
  const std::vector<Port>* late_outputs() const override { return &outputs(); }
  Status run() override;
  void set_profile(bool on) override;
  void reset_profile() override;
  // Of the parts of the last run, in order.
  int64_t command_count() const override;
  CommandReport command(int64_t number) const override;

 private:
  struct Ready {
    std::shared_ptr<Part> part;
    std::unique_ptr<Context> context;
    bool is_interpreted = false;           // the part was, then
    std::vector<tensor::Literal> results;  // of a stage, or of a leaf with open outputs
    std::vector<Port> outputs;             // of a leaf, as the last run has them
  };
  struct BoundOutput {
    void* data = nullptr;
    std::vector<int64_t> dims;
  };

  const std::vector<Port>& outputs() const {
    return now_ != nullptr ? now_->outputs : program_->outputs();
  }
  Status walk_to_the_end();
  uint64_t hash_of_inputs() const;
  Result<std::shared_ptr<Part>> walk();
  // Its value; what else it computes is there for the parts behind it.
  Result<const tensor::Literal*> run_stage(const std::shared_ptr<Part>& part);
  Status run_into_results(Ready* ready);
  // What outputs there are is known behind the run only.
  Status run_open(Ready* leaf);
  bool guesses_are_right(const Ready& leaf);
  // A program for many extents is told those of this run.
  Status set_extents(Ready* leaf);
  static void set_dims(Ready* leaf, const std::vector<std::vector<int64_t>>& dims);
  Status bind_inputs(const Ready& ready);
  Result<Ready*> ready(const std::shared_ptr<Part>& part);

  std::shared_ptr<LateProgram> program_;
  LateInputs inputs_;
  std::string shapes_;  // of these
  Computed computed_;   // of the last walk
  std::vector<BoundOutput> outputs_;
  std::unordered_map<const Part*, Ready> ready_;  // what is in it stays where it is
  std::vector<Ready*> walked_;                    // stages of the last walk, and where it ended
  Ready* now_ = nullptr;
  std::shared_ptr<Part> sized_;  // where the last run ended, if it is for several sizes
  std::string sized_shapes_;     // of the inputs then
  // Shapes of the last run, if it found no rows where an open program needs some: one of equal
  // shapes begins with counts that are decided; by_habit_: as long as they are those of a run
  // before.
  std::string nothing_for_;
  bool by_habit_ = false;
  bool profile_ = false;
  std::optional<uint64_t> prepared_;  // the inputs that prepare() ran something for
};

}  // namespace heddle::api
