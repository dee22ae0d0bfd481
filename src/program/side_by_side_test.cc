#include "program/side_by_side.h"

#include <gtest/gtest.h>

namespace heddle::program {
namespace {

// One kernel of one phase and one of two; inputs 0 and 1, outputs 0 and 1 (output 1 may lie on
// input 1), a constant, and temporaries at 0, 64 and 32.
class SideBySide : public ::testing::Test {
 protected:
  SideBySide() {
    program_.kernels.resize(2);
    program_.kernels[0].phases.resize(1);
    program_.kernels[1].phases.resize(2);
    for (const BufferKind kind : {BufferKind::input, BufferKind::output})
      for (int64_t number : {0, 1}) add({"", kind, 64, 0, number});
    program_.buffers[3].alias = BufferId(1);
    add({"", BufferKind::constant, 64});
    for (int64_t offset : {0, 64, 32}) add({"", BufferKind::temporary, 64, offset});
    program_.outputs.resize(2);
    program_.outputs[0].buffer = BufferId(2);
    program_.outputs[1].buffer = BufferId(3);
  }

  void add(Buffer buffer) {
    program_.buffers.push_back(std::move(buffer));
    program_.constants.emplace_back();
  }

  static View view(size_t buffer) {
    return {BufferId(buffer), 0, tensor::Shape::array(tensor::Type::f32, {16})};
  }

  void launch(size_t from, size_t to, size_t kernel = 0) {
    Launch made;
    made.kernel = KernelId(kernel);
    made.arguments = {view(from), view(to)};
    made.inputs = made.outputs = 1;
    program_.commands.emplace_back(std::move(made));
  }

  std::vector<size_t> groups() const { return side_by_side(program_, program_.commands); }

  Program program_;
};

using Groups = std::vector<size_t>;

TEST_F(SideBySide, NeighboursThatShareNothingWritten) {
  launch(0, 5);
  launch(0, 6);
  launch(4, 2);
  EXPECT_EQ(groups(), (Groups{3, 0, 0}));
  EXPECT_EQ(launch_count(program_), 1);
}

TEST_F(SideBySide, NotAReaderOfWhatAnotherWrites) {
  launch(0, 5);
  launch(5, 6);
  launch(0, 5);
  EXPECT_EQ(groups(), (Groups{1, 1, 1}));
}

TEST_F(SideBySide, NotWhatLiesOnTheSameBytes) {
  launch(0, 5);
  launch(0, 7);
  EXPECT_EQ(groups(), (Groups{1, 1}));
}

TEST_F(SideBySide, NotAnOutputThatMayBeAnInputOfAnother) {
  launch(1, 5);
  launch(0, 3);
  EXPECT_EQ(groups(), (Groups{1, 1}));
  program_.buffers[3].alias = {};
  EXPECT_EQ(groups(), (Groups{2, 0}));
}

TEST_F(SideBySide, NotPhasesAndCopies) {
  launch(0, 5, 1);
  launch(0, 6);
  program_.commands.emplace_back(Copy{view(0), view(2)});
  EXPECT_EQ(groups(), (Groups{1, 1, 1}));
  EXPECT_EQ(launch_count(program_), 4);
}

}  // namespace
}  // namespace heddle::program
