// Stores: outputs, updates of variables, and values between kernels.

#include <algorithm>
#include <optional>
#include <utility>

#include "compute/graph/fuser.h"
#include "compute/graph/product.h"

namespace imprint::graph {
namespace {

constexpr std::int64_t kCheapCopy = 4096;  // elements whose copy costs less than waiting

}  // namespace

std::int32_t Fuser::add_copy(NodeIndex node) {
  Task task;
  task.element_count = graph_[node].element_count();
  task.members.push_back(node);
  schedule_.tasks.push_back(std::move(task));
  const std::int32_t t = static_cast<std::int32_t>(schedule_.tasks.size()) - 1;
  add_reads(t, schedule_.materialized[at(node)] ? std::vector<Read>{{node, true}} : reads_of(node));
  return t;
}

void Fuser::add_store(std::int32_t t, NodeIndex node, Place place, NodeIndex rows) {
  schedule_.tasks[static_cast<std::size_t>(t)].stores.push_back({node, place, rows});
  Place& own = schedule_.place[at(node)];
  if (own.kind == PlaceKind::none && rows < 0) own = place;
}

void Fuser::store_outputs() {
  for (std::size_t i = 0; i < request_.outputs.size(); ++i) {
    const NodeIndex node = without_reshape(request_.outputs[i].node);
    const std::int32_t producer = task_of_[at(node)];
    add_store(producer >= 0 ? producer : add_copy(node), node,
              {PlaceKind::output, static_cast<std::int32_t>(i)});
  }
}

std::vector<std::int32_t> Fuser::readers_of_variable(std::int32_t variable) const {
  std::vector<std::int32_t> readers;
  for (std::size_t t = 0; t < schedule_.tasks.size(); ++t)
    if (reads_variable(static_cast<std::int32_t>(t), variable))
      readers.push_back(static_cast<std::int32_t>(t));
  return readers;
}

const Read* Fuser::reads_variable(std::int32_t t, std::int32_t variable) const {
  for (const Read& read : schedule_.tasks[static_cast<std::size_t>(t)].reads)
    if (graph_[read.node].op == Op::variable && schedule_.place[at(read.node)].index == variable)
      return &read;
  return nullptr;
}

bool Fuser::depends(std::int32_t task, std::int32_t on) const {
  std::vector<std::int32_t> stack{task};
  std::vector<std::uint8_t> seen(schedule_.tasks.size(), 0);
  while (!stack.empty()) {
    const std::int32_t t = stack.back();
    stack.pop_back();
    if (t == on) return true;
    if (std::exchange(seen[static_cast<std::size_t>(t)], 1)) continue;
    for (std::int32_t before : schedule_.tasks[static_cast<std::size_t>(t)].after) stack.push_back(before);
  }
  return false;
}

bool Fuser::can_write_in_place(std::int32_t writer, std::int32_t variable, bool by_rows) const {
  if (const Read* own = reads_variable(writer, variable); own && (by_rows || !own->aligned)) return false;
  for (std::size_t t = 0; by_rows && t < schedule_.tasks.size(); ++t)  // updates of its other rows come first
    if (std::ranges::find(schedule_.tasks[t].stores, Place{PlaceKind::variable, variable}, &Store::place) !=
            schedule_.tasks[t].stores.end() &&
        (static_cast<std::int32_t>(t) == writer || depends(static_cast<std::int32_t>(t), writer)))
      return false;
  return std::ranges::none_of(readers_of_variable(variable), [&](std::int32_t reader) {
    return reader != writer && depends(reader, writer);
  });
}

bool Fuser::delays_others(std::int32_t writer, const GraphUpdate& update) const {
  const std::vector<Task>& tasks = schedule_.tasks;
  const bool is_waited_for = std::ranges::any_of(
      tasks, [&](const Task& task) { return std::ranges::find(task.after, writer) != task.after.end(); });
  if (!is_waited_for || graph_[update.value].element_count() > kCheapCopy) return false;
  return std::ranges::any_of(readers_of_variable(update.variable), [&](std::int32_t reader) {
    return reader != writer &&
           tasks[static_cast<std::size_t>(reader)].level >= tasks[static_cast<std::size_t>(writer)].level;
  });
}

void Fuser::write_variable(std::int32_t writer, NodeIndex node, std::int32_t variable, NodeIndex rows) {
  for (std::int32_t reader : readers_of_variable(variable))
    if (reader != writer) add_order(reader, writer);
  // Several row updates of one variable run in order.
  for (std::size_t t = 0; t < schedule_.tasks.size(); ++t)
    for (const Store& store : schedule_.tasks[t].stores)
      if (store.place == Place{PlaceKind::variable, variable} && static_cast<std::int32_t>(t) != writer)
        add_order(static_cast<std::int32_t>(t), writer);
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
    const NodeIndex node = without_reshape(update.value);
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
  const NodeIndex node = without_reshape(update.value);
  return task_of_[at(node)] >= 0 ? task_of_[at(node)] : add_copy(node);
}

std::int32_t Fuser::rows_writer(const GraphUpdate& update, NodeIndex& rows) {
  const std::int32_t producer = task_of_[at(without_reshape(update.value))];
  if (producer < 0 || !options_.fuse ||
      schedule_.tasks[static_cast<std::size_t>(producer)].kind == TaskKind::column_fold)
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
  const std::int32_t writer = add_copy(without_reshape(update.value));
  add_reads(writer, row_reads(update.rows));
  return writer;
}

std::vector<Read> Fuser::row_reads(NodeIndex rows) const {
  const NodeIndex source = without_reshape(rows);
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

void Fuser::share_tiles() {
  if (options_.product_turn_operations > 0) return;  // a few cores are full with either
  for (std::int32_t level = 0; level < schedule_.level_count; ++level) {
    std::vector<Task*> tasks;
    for (Task& task : schedule_.tasks)
      if (task.level == level && task.kind == TaskKind::product && task.tile.units == MatrixUnits::none)
        tasks.push_back(&task);
    if (std::ranges::any_of(tasks, [](const Task* task) {
          return std::ranges::any_of(task->choices, &VariantChoice::from_table);
        }))
      continue;
    std::vector<NodeIndex> matmuls;
    std::vector<ProductTile> tiles;
    for (const Task* task : tasks) {
      matmuls.push_back(task->anchor);
      tiles.push_back(task->tile);
    }
    if (std::ranges::all_of(tiles, [&](const ProductTile& tile) { return tile == tiles.front(); })) continue;
    const std::optional<ProductTile> shared = choose_shared_tile(graph_, matmuls, tiles, options_);
    if (!shared) continue;
    for (Task* task : tasks) {
      task->tile = *shared;
      for (VariantChoice& choice : task->choices) choice.taken = product_tile_text(*shared);
    }
  }
}

}  // namespace imprint::graph
