// Stores: outputs, updates of variables, and values between kernels.

#include <algorithm>
#include <optional>
#include <utility>

#include "compute/graph/plan/fuser.h"
#include "compute/graph/schedule/product.h"

namespace imprint::graph {
namespace {

constexpr std::int64_t kCheapCopy = 4096;  // elements whose copy costs less than waiting

}  // namespace

std::int32_t Fuser::add_copy(NodeIndex node) {
  Task task;
  task.element_count = graph_[node].element_count();
  task.members.push_back(node);
  const std::int32_t t = links_.add(std::move(task));
  add_reads(t, schedule_.materialized[at(node)] ? std::vector<Read>{{node, true}} : reads_of(node));
  return t;
}

void Fuser::add_store(std::int32_t t, NodeIndex node, Place place, NodeIndex rows) {
  links_.add_store(t, {node, place, rows});
  Place& own = schedule_.place[at(node)];
  if (own.kind == PlaceKind::none && rows < 0) own = place;
}

void Fuser::store_outputs() {
  for (std::size_t i = 0; i < request_.outputs.size(); ++i) {
    const NodeIndex node = graph_.without_reshape(request_.outputs[i].node);
    const std::int32_t producer = task_of_[at(node)];
    add_store(producer >= 0 ? producer : add_copy(node), node,
              {PlaceKind::output, static_cast<std::int32_t>(i)});
  }
}

bool Fuser::can_write_in_place(std::int32_t writer, std::int32_t variable, bool by_rows) const {
  if (const Read* own = links_.read_of_variable(writer, variable); own && (by_rows || !own->aligned))
    return false;
  // Updates of its other rows come first.
  if (by_rows && links_.any_waits_for(links_.writers_of_variable(variable), writer)) return false;
  std::vector<std::int32_t> readers = links_.readers_of_variable(variable);
  std::erase(readers, writer);
  return !links_.any_waits_for(readers, writer);
}

// A small value that would wait for later readers of its variable is stored apart and copied, where others
// wait for it, or for its reads of what they write.
bool Fuser::delays_others(std::int32_t writer, const GraphUpdate& update) {
  if (graph_[update.value].element_count() > kCheapCopy) return false;
  const bool waits =
      std::ranges::any_of(links_.readers_of_variable(update.variable), [&](std::int32_t reader) {
        return reader != writer && schedule_.tasks[at(reader)].level >= schedule_.tasks[at(writer)].level;
      });
  return waits && (links_.is_waited_for(writer) || reads_other_updates(writer, update.variable));
}

bool Fuser::reads_other_updates(std::int32_t t, std::int32_t variable) {
  if (is_updated_.empty()) {
    is_updated_.resize(request_.variables.size(), 0);
    for (const GraphUpdate& update : request_.updates) is_updated_[at(update.variable)] = 1;
  }
  return std::ranges::any_of(schedule_.tasks[at(t)].reads, [&](const Read& read) {
    const Place& place = schedule_.place[at(read.node)];
    return place.kind == PlaceKind::variable && place.index != variable && is_updated_[at(place.index)] != 0;
  });
}

void Fuser::write_variable(std::int32_t writer, NodeIndex node, std::int32_t variable, NodeIndex rows) {
  for (std::int32_t reader : links_.readers_of_variable(variable))
    if (reader != writer) links_.add_order(reader, writer);
  // Several row updates of one variable run in order.
  for (std::int32_t earlier : links_.writers_of_variable(variable))
    if (earlier != writer) links_.add_order(earlier, writer);
  add_store(writer, node, {PlaceKind::variable, variable}, rows);
}

void Fuser::store_updates() {
  std::vector<std::int32_t> writers;
  std::vector<NodeIndex> rows;
  for (const GraphUpdate& update : request_.updates) {
    rows.push_back(update.rows);
    writers.push_back(update.rows >= 0 ? rows_writer(update, rows.back()) : assignment_writer(update));
  }
  for (std::size_t i = 0; i < writers.size(); ++i) {
    const GraphUpdate& update = request_.updates[i];
    const NodeIndex node = graph_.without_reshape(update.value);
    if (!can_write_in_place(writers[i], update.variable, update.rows >= 0) ||
        delays_others(writers[i], update)) {
      if (schedule_.place[at(node)].kind == PlaceKind::none)
        add_store(writers[i], node, {PlaceKind::temporary, node});
      writers[i] = update.rows >= 0 ? add_rows_copy(update) : add_copy(node);
      rows[i] = update.rows;
    }
    write_variable(writers[i], node, update.variable, rows[i]);
  }
}

std::int32_t Fuser::assignment_writer(const GraphUpdate& update) {
  const NodeIndex node = graph_.without_reshape(update.value);
  return task_of_[at(node)] >= 0 ? task_of_[at(node)] : add_copy(node);
}

std::int32_t Fuser::rows_writer(const GraphUpdate& update, NodeIndex& rows) {
  const std::int32_t producer = task_of_[at(graph_.without_reshape(update.value))];
  if (producer < 0 || !options_.fuse || schedule_.tasks[at(producer)].kind == TaskKind::column_fold ||
      schedule_.tasks[at(producer)].kind == TaskKind::page)
    return add_rows_copy(update);
  const auto in_time = [&](NodeIndex numbers) {
    return std::ranges::all_of(row_reads(numbers), [&](const Read& read) {
      const std::int32_t before = task_of_[at(read.node)];
      return before < 0 || schedule_.tasks[static_cast<std::size_t>(before)].level <
                               schedule_.tasks[static_cast<std::size_t>(producer)].level;
    });
  };
  if (!in_time(rows)) rows = update.own_rows;
  if (rows < 0) {
    rows = update.rows;
    return add_rows_copy(update);
  }
  add_reads(producer, row_reads(rows));
  return producer;
}

std::int32_t Fuser::add_rows_copy(const GraphUpdate& update) {
  const std::int32_t writer = add_copy(graph_.without_reshape(update.value));
  add_reads(writer, row_reads(update.rows));
  return writer;
}

std::vector<Read> Fuser::row_reads(NodeIndex rows) const {
  const NodeIndex source = graph_.without_reshape(rows);
  std::vector<Read> reads =
      schedule_.materialized[at(source)] ? std::vector<Read>{{source, false}} : reads_of(rows);
  for (Read& read : reads) read.aligned = false;
  return reads;
}

void Fuser::store_temporaries() {
  for (std::size_t t = 0; t < schedule_.tasks.size(); ++t)
    for (const Read& read : schedule_.tasks[t].reads) {
      const std::int32_t producer = task_of_[at(read.node)];
      if (producer >= 0 && schedule_.place[at(read.node)].kind == PlaceKind::none)
        add_store(producer, read.node, {PlaceKind::temporary, read.node});
    }
}

// Tasks are in order of level.
void Fuser::share_tiles() {
  if (options_.product_turn_operations > 0) return;  // a few cores are full with either
  std::vector<Task*> tasks, on_units, of_places;
  std::int32_t level = -1;
  for (Task& task : schedule_.tasks) {
    if (task.level != level) {
      share_tile(std::exchange(tasks, {}));
      share_tile(std::exchange(on_units, {}));
      share_tile(std::exchange(of_places, {}));
    }
    level = task.level;
    if (task.kind != TaskKind::product) continue;
    if (task.tile.units == MatrixUnits::none)
      tasks.push_back(&task);
    else if (task.tile.units == MatrixUnits::subgroup && graph_[task.anchor].stays_tiled)
      of_places.push_back(&task);
    else if (task.tile.units == MatrixUnits::subgroup &&
             suits_older_dialect(graph_, schedule_.materialized, task.anchor, options_))
      on_units.push_back(&task);
  }
  share_tile(tasks);
  share_tile(on_units);
  share_tile(of_places);
}

void Fuser::share_tile(const std::vector<Task*>& tasks) {
  if (std::ranges::any_of(tasks, [](const Task* task) {
        return std::ranges::any_of(task->choices, &VariantChoice::from_table);
      }))
    return;
  std::vector<NodeIndex> matmuls;
  std::vector<ProductTile> tiles;
  for (const Task* task : tasks) {
    matmuls.push_back(task->anchor);
    tiles.push_back(task->tile);
  }
  const bool are_equal =
      std::ranges::all_of(tiles, [&](const ProductTile& tile) { return tile == tiles.front(); });
  const bool of_places = !matmuls.empty() && graph_[matmuls.front()].stays_tiled;
  if (tiles.size() < 2 || (are_equal && tiles.front().units != MatrixUnits::none && !of_places)) return;
  const std::optional<ProductTile> shared =
      choose_shared_tile(graph_, schedule_.materialized, matmuls, tiles, options_);
  if (!shared) return;
  for (Task* task : tasks) {
    task->tile = *shared;
    for (VariantChoice& choice : task->choices) choice.taken = product_tile_text(*shared);
  }
}

}  // namespace imprint::graph
