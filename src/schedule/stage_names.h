// Names of `stage` that strategies use unqualified.
#pragma once

#include "stage/placed.h"
#include "stage/stage_graph.h"
#include "target/target.h"

namespace heddle::schedule {

using stage::Chain;
using stage::ColumnSum;
using stage::Digit;
using stage::Drive;
using stage::Gemm;
using stage::GemmShape;
using stage::GemmTile;
using stage::Group;
using stage::Kept;
using stage::Link;
using stage::Load;
using stage::Loop;
using stage::LoopKind;
using stage::Nest;
using stage::Node;
using stage::Output;
using stage::Own;
using stage::Placed;
using stage::PlacedFusion;
using stage::Placement;
using stage::Pooled;
using stage::Row;
using stage::RowDigits;
using stage::RowKind;
using stage::Schedule;
using stage::ScheduleNode;
using stage::Source;
using stage::Stage;
using stage::StagedOrNot;
using stage::StageGraph;
using stage::StageId;
using stage::Turn;
using stage::Type;
using stage::Value;
using stage::Window;
using stage::WindowForm;
using stage::Winograd;
using stage::WinogradShape;
using stage::WinogradTile;

}  // namespace heddle::schedule
