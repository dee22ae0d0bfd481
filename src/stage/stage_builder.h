// Private to stage and schedule: builds stages from the instructions of a fusion.
#pragma once

#include <map>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "hlo/index_map.h"
#include "stage/members.h"
#include "stage/stage_graph.h"

namespace heddle::stage {

using hlo::Instr;
using hlo::Opcode;
using index::Expr;
using index::Guard;
using Coordinates = std::vector<Expr>;

// Instructions that become stages: reduces, dots, convolutions, outputs, and the cuts between
// several readers (stages.md §1, §5).
std::unordered_set<const Instr*> choose_sub_roots(const Members& members,
                                                  Repeat repeat = Repeat::none);

// Builds the body of one stage.
class StageBuilder {
 public:
  StageBuilder(const Members& members, const std::unordered_map<const Instr*, StageId>& stages,
               Stage* stage)
      : members_(members), stages_(stages), stage_(*stage) {}

  // Node of `instr`'s element at `at`; `instr` itself is expanded even if it is a sub-root.
  int expand(const Instr* instr, const Coordinates& at, const std::vector<Guard>& guards);
  // Node of `instr`'s element at `at`: a load if it is an input or another stage's value.
  int value(const Instr* instr, const Coordinates& at, const std::vector<Guard>& guards);
  int add(Node node);
  int constant(const tensor::Literal& literal);
  int multiply(int a, int b, Type type);
  // `on_true` where the whole condition holds, else `on_false`.
  int guarded(const std::vector<Guard>& condition, int on_true, int on_false, Type type);
  Decision decision = Decision::yes();

 private:
  int load(Source source, Coordinates coordinates, const std::vector<Guard>& guards, Type type);
  int integer(int64_t value, Type type);
  int runtime_start(const Instr* indices, const Coordinates& at, int64_t limit,
                    const std::vector<Guard>& guards);
  Expr position(const Instr* instr, const hlo::DimLink& link, const Coordinates& at,
                const std::vector<Guard>& guards);
  int moved(const Instr* instr, const Coordinates& at, const std::vector<Guard>& guards);
  int elementwise(const Instr* instr, const Coordinates& at, const std::vector<Guard>& guards);
  int winograd_filter(const Instr* instr, const Coordinates& at, const std::vector<Guard>& guards);

  const Members& members_;
  const std::unordered_map<const Instr*, StageId>& stages_;
  Stage& stage_;
  struct Memo {
    Coordinates at;
    std::vector<Guard> guards;
    int node;
  };
  std::unordered_map<const Instr*, std::vector<Memo>> memo_;
  size_t evaluations_ = 0;  // of elementwise operators, in this stage
};

// Splits digits of which an access takes a quotient or remainder by a divisor of the extent, until
// no more can be split; readers' coordinates are adapted.
void split_digits(StageGraph* graph);
// Also splits rows of products that a later product reads as several digits (a batch, rows of
// each).
void split_rows(StageGraph* graph);
// Rewrites every expression of a stage: old digit i becomes with[i], over the new digits, which the
// stage has already.
void substitute_stage(Stage* stage, const std::vector<Expr>& with);

}  // namespace heddle::stage
