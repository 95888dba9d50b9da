// The search tree: nodes keyed by the sequence of actions from the root.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/types.h"

namespace bothost::search {

using NodeId = std::uint32_t;
inline constexpr NodeId kNoNode = std::numeric_limits<NodeId>::max();
inline constexpr NodeId kRoot = 0;

/// An action at a node, with its statistics. Values are those of the seat that acts at the node.
struct Edge {
  Action action;
  NodeId child = kNoNode;
  std::uint32_t visits = 0;
  /// Iterations in which the action was legal at the node. Determinizations differ in their legal actions
  /// (Cowling, Powley, Whitehouse, "Information Set Monte Carlo Tree Search", 2012).
  std::uint32_t available = 0;
  /// Visits that wait for a value. Each counts as a loss until then.
  std::uint32_t pending = 0;
  double total = 0.0;
  float prior = 0.0f;
  std::uint32_t evaluations = 0;
  bool has_prior = false;
  /// The game policy's preference for the action, if it was asked (progressive widening).
  float preference = kUnknown;

  static constexpr float kUnknown = -std::numeric_limits<float>::infinity();

  double mean(double prior_visits) const {
    const double weight = has_prior ? prior_visits : 0.0;
    const double n = visits + pending + weight;
    return n > 0 ? (total - pending + weight * prior) / n : 0.0;
  }
};

/// Edges ascend by action. A node holds every action that was legal there in some determinization.
struct Node {
  std::vector<Edge> edges;
  std::uint32_t visits = 0;
  /// The seat that acts here, once known.
  Seat seat = kNobody;

  /// The first edge whose action is not below this one.
  auto edge(Action action) { return std::ranges::lower_bound(edges, action, {}, &Edge::action); }

  /// Finds or makes the edges of `legal` (ascending); `out` receives their indices.
  void match(const ActionList& legal, std::vector<std::uint32_t>& out) {
    out.clear();
    std::size_t at = 0;
    for (const Action action : legal) {
      while (at < edges.size() && edges[at].action < action) ++at;
      if (at == edges.size() || edges[at].action != action) {
        add_missing(legal);
        return match(legal, out);
      }
      out.push_back(static_cast<std::uint32_t>(at));
    }
  }

 private:
  void add_missing(const ActionList& legal) {
    std::vector<Edge> missing;
    std::size_t at = 0;
    for (const Action action : legal) {
      while (at < edges.size() && edges[at].action < action) ++at;
      if (at == edges.size() || edges[at].action != action) missing.push_back({.action = action});
    }
    const auto middle = edges.insert(edges.end(), missing.begin(), missing.end());
    std::ranges::inplace_merge(edges, middle, {}, &Edge::action);
  }
};

/// Nodes in one growing array. The child of an edge is an index, so a tree is freed and copied as a whole.
class Tree {
 public:
  Tree() { clear(); }

  void clear() {
    nodes_.clear();
    nodes_.emplace_back();
  }

  Node& operator[](NodeId id) { return nodes_[id]; }
  const Node& operator[](NodeId id) const { return nodes_[id]; }
  std::size_t size() const { return nodes_.size(); }

  NodeId add() {
    nodes_.emplace_back();
    return static_cast<NodeId>(nodes_.size() - 1);
  }

  /// Makes the child by `action` the root and drops everything outside its subtree. Returns false, with an
  /// empty tree, if the action was never tried.
  bool advance(Action action) {
    Node& root = nodes_[kRoot];
    const auto at = root.edge(action);
    if (at == root.edges.end() || at->action != action || at->child == kNoNode) {
      clear();
      return false;
    }
    keep(at->child);
    return true;
  }

 private:
  /// Copies the subtree under `from` into a new array, breadth first.
  void keep(NodeId from) {
    std::vector<Node> kept;
    std::vector<NodeId> sources{from};
    for (std::size_t i = 0; i < sources.size(); ++i) {
      Node node = std::move(nodes_[sources[i]]);
      for (auto& edge : node.edges) {
        if (edge.child == kNoNode) continue;
        sources.push_back(edge.child);
        edge.child = static_cast<NodeId>(sources.size() - 1);
      }
      kept.push_back(std::move(node));
    }
    nodes_ = std::move(kept);
  }

  std::vector<Node> nodes_;
};

}  // namespace bothost::search
