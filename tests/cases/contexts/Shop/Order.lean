prelude
import Core
import Shop.Cart

namespace Shop

open Cart

/-- A cart that somebody has paid. -/
structure Order where
  cart : Cart
  paid : Price
  enough : cart.total.cents = paid.cents

/-- An order of nothing. -/
def Order.nothing : Order := ⟨.empty, free, rfl⟩

/-- Nothing is paid for nothing. -/
theorem Order.nothing_paid : Order.nothing.paid.cents = 0 :=
  Order.nothing.enough.symm.trans (congrArg Price.cents total_empty)

theorem Order.paid_total (order : Order) : order.paid.cents = order.cart.total.cents := by
  exact order.enough.symm

end Shop
