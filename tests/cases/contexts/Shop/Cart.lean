prelude
import Core
import Shop.Price

open Shop

namespace Shop.Cart

/-- What is in a cart, the newest first. -/
inductive Cart where
  | empty
  | put (one : Price) (rest : Cart)

/-- What all of it costs. -/
def Cart.total : Cart → Price
  | .empty => free
  | .put one rest => one.both rest.total

theorem total_empty : Cart.empty.total = free := rfl

@[reducible] def single (one : Price) : Cart := .put one .empty

local notation "⟪" one "⟫" => single one

/-- A cart with one thing costs what that does. -/
theorem total_single (one : Price) : ⟪one⟫.total.cents = one.cents := one.both_free

/-- Carts that cost nothing. -/
class Free (cart : Cart) : Prop where
  total : cart.total.cents = 0

instance empty_free : Free .empty where
  total := rfl

theorem put_free : ∀ cart : Cart, cart.total.cents = 0 → (Cart.put free cart).total.cents = 0
  | .empty, _ => rfl
  | .put one rest, h => (congrArg (Nat.add 0) h).trans rfl

end Shop.Cart
