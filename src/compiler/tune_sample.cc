#include "compiler/tune_sample.h"

#include "compiler/with_rows.h"
#include "cost/gemm_time.h"
#include "schedule/tuning.h"

namespace heddle::compiler {
namespace {

// With fewer tiles one tile is a large part of the time; and such products are memory-bound.
constexpr int64_t kFewestTiles = 4;

// Rows as whole tiles in whole blocks.
struct Blocks {
  int64_t blocks = 1, tiles = 1;  // of a block
};

stage::Gemm with_blocks(stage::Gemm gemm, const Blocks& blocks) {
  gemm.m_block = blocks.tiles * gemm.mr;
  return gemm;
}

// Predicted cycles of `rows` rows in the record's blocks.
double cycles(const stage::Gemm& gemm, int64_t rows, const TuneTask& task,
              const target::Target& target) {
  auto of = [&](int64_t some) {
    return some > 0 ? cost::gemm_cycles(gemm, some, task.columns, task.depth, target) : 0;
  };
  return static_cast<double>(rows / gemm.m_block) * of(gemm.m_block) + of(rows % gemm.m_block);
}

}  // namespace

SampleProgram sample_program(const TuneTask& task, const std::string& record,
                             const target::Target& target) {
  SampleProgram result;
  result.target = with_record(target, task.key, record);
  const Result<stage::Gemm> gemm = stage::parse_gemm(record);
  if (task.rows > 0 && gemm) {
    const int64_t block = std::min(gemm->m_block, task.rows);
    const Blocks own{(task.rows + block - 1) / block, (block + gemm->mr - 1) / gemm->mr};
    // Two other shapes, with numbers coprime to each other.
    Blocks others[] = {{5, 13}, {7, 29}};
    if (own.blocks == 1) others[0].blocks = others[1].blocks = 1;
    auto sample = [&](const Blocks& blocks) {
      const int64_t rows = blocks.blocks * blocks.tiles * gemm->mr;
      result.target = with_record(result.target, schedule::gemm_key(rows, task.columns, task.depth),
                                  to_string(with_blocks(*gemm, blocks)));
      return with_rows(*task.sample, rows);
    };
    if (own.tiles >= kFewestTiles) {
      result.module = sample(own);
      for (const Blocks& other : others)
        if (result.module) result.twins.push_back(sample(other));
    }
    if (result.module) {
      const stage::Gemm measured = with_blocks(*gemm, own);
      result.scale = cycles(*gemm, task.rows, task, target) /
                     cycles(measured, own.blocks * measured.m_block, task, target);
      return result;
    }
    result.twins.clear();
    result.target = with_record(target, task.key, record);
  }
  result.module = task.sample->clone();
  return result;
}

}  // namespace heddle::compiler
