prelude
import Core

/-! New types, recursion over them, lists: nothing here may give a message. -/

inductive Tree (α : Type) where
  | leaf : Tree α
  | node (left : Tree α) (label : α) (right : Tree α) : Tree α

namespace Tree

def size {α : Type} : Tree α → Nat
  | leaf => 0
  | node l _ r => l.size + 1 + r.size

def mirror {α : Type} : Tree α → Tree α
  | leaf => leaf
  | node l a r => node r.mirror a l.mirror

theorem size_mirror {α : Type} (t : Tree α) : t.mirror.size = t.size := by
  induction t with
  | leaf => rfl
  | node l a r ihl ihr =>
    simp only [mirror, size, ihl, ihr]
    rw [Nat.add_right_comm, Nat.add_comm r.size, Nat.add_right_comm]

end Tree

structure Point where
  x : Nat
  y : Nat

theorem Point.eta (p : Point) : p = ⟨p.x, p.y⟩ := rfl

theorem point_field : ({ x := 1, y := 2 } : Point).y = 2 := rfl

inductive Colour where
  | red
  | green

theorem colours_differ : Colour.red ≠ Colour.green := by nofun

theorem constructors_differ (n : Nat) (l : List Nat) (h : n :: l = []) : False := by cases h

class Pointed (α : Type) where
  point : α

instance : Pointed Nat := ⟨7⟩

instance {α β : Type} [Pointed α] [Pointed β] : Pointed (α × β) := ⟨(Pointed.point, Pointed.point)⟩

theorem pointed_pair : (Pointed.point : Nat × Nat) = (7, 7) := rfl

theorem list_literal : [1, 2] ++ [3] = 1 :: [2, 3] := rfl

theorem reversed (l k : List Nat) : (l ++ k).reverse.length = k.length + l.length := by simp

theorem mapped (l k : List Nat) (f : Nat → Nat) : (l ++ k).map f = l.map f ++ k.map f := by
  rw [List.map_append]
