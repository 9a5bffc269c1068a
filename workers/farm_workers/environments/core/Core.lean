prelude
/-
The core library of the embedded Lean.

Lean's compiled library carries the parser, the elaborators, the tactics, the macros and the kernel, but not the
modules that declare the constants they work with. This file declares those constants. Names, types and the order
of constructors are fixed by the compiled code that looks them up; the definitions and the proofs are ours.

The order of the file matters: Lean generates `casesOn`, `recOn`, `below`, `brecOn` and `noConfusion` for a type
only when the constants they are built from exist already.
-/

set_option genCtorIdx false
set_option genInjectivity false
set_option genSizeOf false
set_option linter.unusedVariables false

universe u v w x

/-! ## Marks of the compiler

Erased values and unreachable code. They are `unsafe`: the kernel lets no theorem use them. -/

unsafe axiom lcErased : Type
unsafe axiom lcAny : Type
unsafe axiom lcVoid : Type
unsafe axiom lcProof {α : Prop} : α
unsafe axiom lcUnreachable {α : Sort u} : α
unsafe axiom lcCast {α : Sort u} {β : Sort v} (a : α) : β

/-! ## Functions, units and pairs -/

@[inline] def id {α : Sort u} (a : α) : α := a
@[inline] def Function.const {α : Sort u} (β : Sort v) (a : α) : β → α := fun _ => a
@[inline] def Function.comp {α : Sort u} {β : Sort v} {δ : Sort w} (f : β → δ) (g : α → β) : α → δ :=
  fun x => f (g x)
set_option checkBinderAnnotations false in
abbrev inferInstance {α : Sort u} [i : α] : α := i

set_option bootstrap.inductiveCheckResultingUniverse false in
inductive PUnit : Sort u where
  | unit : PUnit
abbrev Unit : Type := PUnit
@[match_pattern] abbrev Unit.unit : Unit := PUnit.unit

structure PProd (α : Sort u) (β : Sort v) where
  mk ::
  fst : α
  snd : β
structure MProd (α β : Type u) where
  mk ::
  fst : α
  snd : β
structure PLift (α : Sort u) : Type u where
  up ::
  down : α
structure PULift.{r, s} (α : Sort s) : Sort (max s r 1) where
  up ::
  down : α
structure ULift.{r, s} (α : Type s) : Type (max s r) where
  up ::
  down : α

/-! ## Gadgets that elaborators leave in types -/

abbrev optParam (α : Sort u) (default : α) : Sort u := α
abbrev outParam (α : Sort u) : Sort u := α
abbrev semiOutParam (α : Sort u) : Sort u := α
abbrev letFun {α : Sort u} {β : α → Sort v} (v : α) (f : (x : α) → β x) : β v := f v
abbrev namedArgument (α : Sort u) : Sort u := α
abbrev eagerReduce {α : Sort u} (a : α) : α := a
def wfParam {α : Sort u} (a : α) : α := a
class Inhabited (α : Sort u) where
  mk ::
  default : α

/-! ## True, false and equality -/

inductive True : Prop where
  | intro : True
inductive False : Prop
inductive Empty : Type
set_option bootstrap.inductiveCheckResultingUniverse false in
inductive PEmpty : Sort u
def Not (a : Prop) : Prop := a → False
@[macro_inline] def False.elim {C : Sort u} (h : False) : C := h.rec
@[macro_inline] def absurd {a : Prop} {b : Sort v} (h : a) (no : Not a) : b := (no h).rec
theorem trivial : True := True.intro

inductive Eq {α : Sort u} : α → α → Prop where
  | refl (a : α) : Eq a a
abbrev Eq.ndrec.{i, j} {α : Sort j} {a : α} {motive : α → Sort i} (m : motive a) {b : α} (h : Eq a b) :
    motive b :=
  h.rec m
set_option linter.defProp false in
@[match_pattern] def rfl {α : Sort u} {a : α} : Eq a a := Eq.refl a
theorem Eq.subst {α : Sort u} {motive : α → Prop} {a b : α} (h : Eq a b) (m : motive a) : motive b :=
  Eq.ndrec m h
theorem Eq.symm {α : Sort u} {a b : α} (h : Eq a b) : Eq b a := Eq.subst (motive := fun x => Eq x a) h rfl
theorem Eq.trans {α : Sort u} {a b c : α} (h : Eq a b) (k : Eq b c) : Eq a c :=
  Eq.subst (motive := fun x => Eq a x) k h
abbrev Eq.ndrec_symm.{i, j} {α : Sort j} {a : α} {motive : α → Sort i} (m : motive a) {b : α} (h : Eq b a) :
    motive b :=
  Eq.ndrec m h.symm
@[macro_inline] def cast {α β : Sort u} (h : Eq α β) (a : α) : β := h.rec a
theorem congrArg {α : Sort u} {β : Sort v} {a b : α} (f : α → β) (h : Eq a b) : Eq (f a) (f b) :=
  Eq.subst (motive := fun x => Eq (f a) (f x)) h rfl
theorem congrFun {α : Sort u} {β : α → Sort v} {f g : (x : α) → β x} (h : Eq f g) (a : α) : Eq (f a) (g a) :=
  Eq.subst (motive := fun (k : (x : α) → β x) => Eq (f a) (k a)) h rfl
theorem congrFun' {α : Sort u} {β : Sort v} {f g : α → β} (h : Eq f g) (a : α) : Eq (f a) (g a) :=
  congrFun h a
theorem congr {α : Sort u} {β : Sort v} {f g : α → β} {a b : α} (h : Eq f g) (k : Eq a b) : Eq (f a) (g b) :=
  Eq.trans (congrFun h a) (congrArg g k)
abbrev namedPattern {α : Sort u} (x a : α) (h : Eq x a) : α := a

inductive HEq : {α : Sort u} → α → {β : Sort u} → β → Prop where
  | refl {α : Sort u} (a : α) : HEq a a
set_option linter.defProp false in
@[match_pattern] def HEq.rfl {α : Sort u} {a : α} : HEq a a := HEq.refl a
theorem eq_of_heq {α : Sort u} {a b : α} (h : HEq a b) : Eq a b :=
  HEq.rec (motive := fun {β} b _ => (e : Eq α β) → Eq (cast e a) b) (fun _ => Eq.refl a) h rfl
theorem heq_of_eq {α : Sort u} {a b : α} (h : Eq a b) : HEq a b := Eq.subst h (HEq.refl a)
theorem HEq.symm {α β : Sort u} {a : α} {b : β} (h : HEq a b) : HEq b a :=
  HEq.rec (motive := fun {_} b _ => HEq b a) (HEq.refl a) h
theorem type_eq_of_heq {α β : Sort u} {a : α} {b : β} (h : HEq a b) : Eq α β :=
  HEq.rec (motive := fun {β} _ _ => Eq α β) rfl h

/-! ## Quotients and the three axioms that every Lean has -/

init_quot
axiom Quot.sound : ∀ {α : Sort u} {r : α → α → Prop} {a b : α}, r a b → Eq (Quot.mk r a) (Quot.mk r b)
unsafe axiom Quot.lcInv {α : Sort u} {r : α → α → Prop} (q : Quot r) : α
theorem funext {α : Sort u} {β : α → Sort v} {f g : (x : α) → β x} (h : ∀ x, Eq (f x) (g x)) : Eq f g :=
  let pointwise (f g : (x : α) → β x) : Prop := ∀ x, Eq (f x) (g x)
  let apply (q : Quot pointwise) (x : α) : β x := Quot.lift (fun (k : (x : α) → β x) => k x) (fun _ _ e => e x) q
  congrArg apply (Quot.sound h)

structure Iff (a b : Prop) : Prop where
  intro ::
  mp : a → b
  mpr : b → a
axiom propext {a b : Prop} : Iff a b → Eq a b

class inductive Nonempty (α : Sort u) : Prop where
  | intro (val : α) : Nonempty α
axiom Classical.choice {α : Sort u} : Nonempty α → α
noncomputable def Classical.ofNonempty {α : Sort u} [h : Nonempty α] : α := Classical.choice h
instance instNonemptyOfInhabited {α : Sort u} [i : Inhabited α] : Nonempty α := Nonempty.intro i.default


/-! ## Connectives -/

structure And (a b : Prop) : Prop where
  intro ::
  left : a
  right : b
inductive Or (a b : Prop) : Prop where
  | inl (h : a) : Or a b
  | inr (h : b) : Or a b
inductive Exists {α : Sort u} (p : α → Prop) : Prop where
  | intro (w : α) (h : p w) : Exists p
structure Subtype {α : Sort u} (p : α → Prop) where
  mk ::
  val : α
  property : p val
abbrev Ne {α : Sort u} (a b : α) : Prop := Not (Eq a b)
def Xor' (a b : Prop) : Prop := Or (And a (Not b)) (And b (Not a))

/-! ## Data: booleans, numbers, pairs, lists -/

inductive Bool : Type where
  | false : Bool
  | true : Bool
export Bool (false true)
structure Prod (α : Type u) (β : Type v) where
  mk ::
  fst : α
  snd : β
inductive Nat where
  | zero : Nat
  | succ (n : Nat) : Nat
inductive Sum (α : Type u) (β : Type v) where
  | inl (val : α) : Sum α β
  | inr (val : β) : Sum α β
structure Sigma {α : Type u} (β : α → Type v) where
  mk ::
  fst : α
  snd : β fst
structure PSigma {α : Sort u} (β : α → Sort v) where
  mk ::
  fst : α
  snd : β fst
inductive Option (α : Type u) where
  | none : Option α
  | some (val : α) : Option α
export Option (none some)
inductive List (α : Type u) where
  | nil : List α
  | cons (head : α) (tail : List α) : List α
structure Array (α : Type u) where
  mk ::
  toList : List α

/-- What `sorry` leaves in a proof: the warning and the axiom list of a theorem name it. -/
@[extern "lean_sorry", never_extract]
axiom sorryAx (α : Sort u) (synthetic : Bool) : α

/-! Every literal of the kernel is declared here, so that a program cannot give these names another meaning. -/

class OfNat (α : Type u) (_ : Nat) where
  ofNat : α
@[default_instance 100]
instance instOfNatNat (n : Nat) : OfNat Nat n := OfNat.mk n
structure Char where
  ofNat ::
  toNat : Nat
structure String where
  ofList ::
  toList : List Char

/-! ## Decidability

A decision is a Boolean with a proof of what it says; `isTrue` and `isFalse` can be matched on. -/

class Decidable (p : Prop) where
  mk ::
  decide : Bool
  proof : Bool.rec (motive := fun _ => Prop) (Not p) p decide
export Decidable (decide)
@[match_pattern, reducible] def Decidable.isTrue {p : Prop} (h : p) : Decidable p := Decidable.mk true h
@[match_pattern, reducible] def Decidable.isFalse {p : Prop} (h : Not p) : Decidable p := Decidable.mk false h
export Decidable (isTrue isFalse)
abbrev DecidablePred {α : Sort u} (r : α → Prop) := (a : α) → Decidable (r a)
abbrev DecidableRel {α : Sort u} {β : Sort v} (r : α → β → Prop) := (a : α) → (b : β) → Decidable (r a b)
abbrev DecidableEq (α : Sort u) := (a b : α) → Decidable (Eq a b)
@[macro_inline] def cond {α : Sort u} (c : Bool) (t e : α) : α := c.casesOn e t
@[macro_inline] def ite {α : Sort u} (c : Prop) [h : Decidable c] (t e : α) : α := h.decide.casesOn e t
@[macro_inline] def dite {α : Sort u} (c : Prop) [h : Decidable c] (t : c → α) (e : Not c → α) : α :=
  h.casesOn (fun b => b.casesOn e t)
instance instDecidableTrue : Decidable True := isTrue True.intro
instance instDecidableFalse : Decidable False := isFalse id

/-! ## Arithmetic on `Nat`

The kernel computes these functions on literals with big integers, whatever their definition says. Each is therefore
defined here, with the value that the kernel gives, and none is left for a program to define.
Those that recur on something other than an argument are given enough fuel. -/

set_option bootstrap.genMatcherCode false

namespace Nat
@[extern "lean_nat_add", match_pattern]
protected def add : Nat → Nat → Nat
  | n, .zero => n
  | n, .succ m => .succ (Nat.add n m)
@[extern "lean_nat_pred"]
def pred : Nat → Nat
  | .zero => .zero
  | .succ n => n
@[extern "lean_nat_sub"]
protected def sub : Nat → Nat → Nat
  | n, .zero => n
  | n, .succ m => pred (Nat.sub n m)
@[extern "lean_nat_mul"]
protected def mul : Nat → Nat → Nat
  | _, .zero => .zero
  | n, .succ m => Nat.add (Nat.mul n m) n
@[extern "lean_nat_pow"]
protected def pow : Nat → Nat → Nat
  | _, .zero => .succ .zero
  | n, .succ m => Nat.mul (Nat.pow n m) n
@[extern "lean_nat_dec_eq"]
def beq : Nat → Nat → Bool
  | .zero, .zero => true
  | .zero, .succ _ => false
  | .succ _, .zero => false
  | .succ n, .succ m => beq n m
@[extern "lean_nat_dec_le"]
def ble : Nat → Nat → Bool
  | .zero, _ => true
  | .succ _, .zero => false
  | .succ n, .succ m => ble n m
end Nat

theorem Bool.false_ne_true (h : Eq false true) : False :=
  Eq.subst (motive := fun b => Bool.rec (motive := fun _ => Prop) True False b) h True.intro
theorem Nat.beq_refl (n : Nat) : Eq (Nat.beq n n) true := Nat.rec rfl (fun _ ih => ih) n
theorem Nat.eq_of_beq_eq_true : (n m : Nat) → Eq (Nat.beq n m) true → Eq n m
  | .zero, .zero, _ => rfl
  | .zero, .succ _, h => (Bool.false_ne_true h).elim
  | .succ _, .zero, h => (Bool.false_ne_true h).elim
  | .succ n, .succ m, h => congrArg Nat.succ (Nat.eq_of_beq_eq_true n m h)
theorem Nat.ne_of_beq_eq_false {n m : Nat} (h : Eq (Nat.beq n m) false) : Not (Eq n m) :=
  fun e => Bool.false_ne_true (Eq.trans h.symm (Eq.subst (motive := fun x => Eq (Nat.beq n x) true) e (Nat.beq_refl n)))
def Bool.decide {p : Prop} (b : Bool) (yes : Eq b true → p) (no : Eq b false → Not p) : Decidable p :=
  Decidable.mk b (Bool.casesOn (motive := fun c => Eq b c → Bool.rec (motive := fun _ => Prop) (Not p) p c) b no yes rfl)
@[extern "lean_nat_dec_eq"]
instance Nat.decEq (n m : Nat) : Decidable (Eq n m) :=
  Bool.decide (Nat.beq n m) (Nat.eq_of_beq_eq_true n m) Nat.ne_of_beq_eq_false
instance instDecidableEqNat : DecidableEq Nat := Nat.decEq

/-! Different constructors have different numbers: what `noConfusion` is made of. -/

theorem noConfusion_of_Nat {α : Sort u} (f : α → Nat) {a b : α} (h : Eq a b) :
    Bool.rec (motive := fun _ => Prop) False True (Nat.beq (f a) (f b)) :=
  Eq.subst (motive := fun x => Bool.rec (motive := fun _ => Prop) False True (Nat.beq (f a) (f x))) h
    (Nat.rec (motive := fun n => Bool.rec (motive := fun _ => Prop) False True (Nat.beq n n)) True.intro (fun _ ih => ih) (f a))
abbrev noConfusionTypeEnum {α : Sort u} (f : α → Nat) (P : Sort w) (x y : α) : Sort w :=
  Bool.casesOn (motive := fun _ => Sort w) (Nat.beq (f x) (f y)) P (P → P)
abbrev noConfusionEnum {α : Sort u} (f : α → Nat) {P : Sort w} {x y : α} (h : Eq x y) : noConfusionTypeEnum f P x y :=
  Bool.casesOn (motive := fun b => Eq (Nat.beq (f x) (f y)) b → Bool.casesOn (motive := fun _ => Sort w) b P (P → P))
    (Nat.beq (f x) (f y)) (fun e => (Nat.ne_of_beq_eq_false e (congrArg f h)).elim) (fun _ p => p) rfl

set_option genCtorIdx true
attribute [gen_constructor_elims] Bool Nat Option Sum List Or

/-! ## Deciding -/

theorem decide_eq_true {p : Prop} [inst : Decidable p] (h : p) : Eq (decide p) true :=
  match inst with
  | isTrue _ => rfl
  | isFalse no => absurd h no
theorem decide_eq_false {p : Prop} [inst : Decidable p] (h : Not p) : Eq (decide p) false :=
  match inst with
  | isTrue yes => absurd yes h
  | isFalse _ => rfl
theorem of_decide_eq_true {p : Prop} [inst : Decidable p] (h : Eq (decide p) true) : p :=
  match inst, h with
  | isTrue yes, _ => yes
theorem of_decide_eq_false {p : Prop} [inst : Decidable p] (h : Eq (decide p) false) : Not p :=
  match inst, h with
  | isFalse no, _ => no

/-! ## Operations that notation stands for -/

class HAdd (α : Type u) (β : Type v) (γ : outParam (Type w)) where
  hAdd : α → β → γ
class HSub (α : Type u) (β : Type v) (γ : outParam (Type w)) where
  hSub : α → β → γ
class HMul (α : Type u) (β : Type v) (γ : outParam (Type w)) where
  hMul : α → β → γ
class HDiv (α : Type u) (β : Type v) (γ : outParam (Type w)) where
  hDiv : α → β → γ
class HMod (α : Type u) (β : Type v) (γ : outParam (Type w)) where
  hMod : α → β → γ
class HPow (α : Type u) (β : Type v) (γ : outParam (Type w)) where
  hPow : α → β → γ
class HAppend (α : Type u) (β : Type v) (γ : outParam (Type w)) where
  hAppend : α → β → γ
class Add (α : Type u) where
  add : α → α → α
class Sub (α : Type u) where
  sub : α → α → α
class Mul (α : Type u) where
  mul : α → α → α
class Div (α : Type u) where
  div : α → α → α
class Mod (α : Type u) where
  mod : α → α → α
class Pow (α : Type u) (β : Type v) where
  pow : α → β → α
class NatPow (α : Type u) where
  pow : α → Nat → α
class Append (α : Type u) where
  append : α → α → α
class Dvd (α : Type u) where
  dvd : α → α → Prop
class LE (α : Type u) where
  le : α → α → Prop
class LT (α : Type u) where
  lt : α → α → Prop
class BEq (α : Type u) where
  beq : α → α → Bool
class Membership (α : outParam (Type u)) (γ : Type v) where
  mem : γ → α → Prop
attribute [match_pattern] HAdd.hAdd Add.add
@[reducible] def GE.ge {α : Type u} [LE α] (a b : α) : Prop := LE.le b a
@[reducible] def GT.gt {α : Type u} [LT α] (a b : α) : Prop := LT.lt b a

@[default_instance] instance instHAdd {α : Type u} [Add α] : HAdd α α α := ⟨Add.add⟩
@[default_instance] instance instHSub {α : Type u} [Sub α] : HSub α α α := ⟨Sub.sub⟩
@[default_instance] instance instHMul {α : Type u} [Mul α] : HMul α α α := ⟨Mul.mul⟩
@[default_instance] instance instHDiv {α : Type u} [Div α] : HDiv α α α := ⟨Div.div⟩
@[default_instance] instance instHMod {α : Type u} [Mod α] : HMod α α α := ⟨Mod.mod⟩
@[default_instance] instance instHPow {α : Type u} {β : Type v} [Pow α β] : HPow α β α := ⟨Pow.pow⟩
@[default_instance] instance instPowNat {α : Type u} [NatPow α] : Pow α Nat := ⟨NatPow.pow⟩
@[default_instance] instance instHAppendOfAppend {α : Type u} [Append α] : HAppend α α α := ⟨Append.append⟩

instance instAddNat : Add Nat := ⟨Nat.add⟩
instance instSubNat : Sub Nat := ⟨Nat.sub⟩
instance instMulNat : Mul Nat := ⟨Nat.mul⟩
instance instNatPowNat : NatPow Nat := ⟨Nat.pow⟩
inductive Nat.le (n : Nat) : Nat → Prop where
  | refl : Nat.le n n
  | step {m : Nat} : Nat.le n m → Nat.le n (.succ m)
@[reducible] def Nat.lt (n m : Nat) : Prop := Nat.le (Nat.add n 1) m
instance instLENat : LE Nat := ⟨Nat.le⟩
instance instLTNat : LT Nat := ⟨Nat.lt⟩
instance Nat.instDvdNat : Dvd Nat := ⟨fun a b => Exists (fun c => Eq b (HMul.hMul a c))⟩
instance instBEqOfDecidableEq {α : Type u} [DecidableEq α] : BEq α := ⟨fun a b => decide (Eq a b)⟩
class SizeOf (α : Sort u) where
  sizeOf : α → Nat
export SizeOf (sizeOf)
instance (priority := 100) instSizeOfDefault (α : Sort u) : SizeOf α := ⟨fun _ => 0⟩

@[macro_inline] def Bool.and (a b : Bool) : Bool := a.casesOn false b
@[macro_inline] def Bool.or (a b : Bool) : Bool := a.casesOn b true
@[inline] def Bool.not (a : Bool) : Bool := a.casesOn true false
export Bool (and or not)
def bne {α : Type u} [BEq α] (a b : α) : Bool := not (BEq.beq a b)

/-! ## Values for opaque constants -/

attribute [instance] instNonemptyOfInhabited
instance instInhabitedForall {α : Sort u} {β : α → Sort v} [(a : α) → Inhabited (β a)] :
    Inhabited ((a : α) → β a) :=
  ⟨fun _ => Inhabited.default⟩
instance : Inhabited Nat := ⟨0⟩
instance : Inhabited Bool := ⟨false⟩
instance : Inhabited String := ⟨""⟩
instance instInhabitedList {α : Type u} : Inhabited (List α) := ⟨.nil⟩
instance instInhabitedArray {α : Type u} : Inhabited (Array α) := ⟨.mk .nil⟩

/-! ## Names, syntax trees, parser descriptions and macros

What `syntax` and `macro` compile to. Each `@[extern "native"]` constant exists in Lean's compiled library under its
own name; declaring it is all it takes to use it. They are opaque, not axioms: to the kernel they are nothing more
than some value of their type. -/

namespace Lean
inductive Name where
  | anonymous : Name
  | str (pre : Name) (str : String)
  | num (pre : Name) (i : Nat)
instance : Inhabited Name := ⟨.anonymous⟩
namespace Name
/-! Lean keeps a hash in every name, which these constructors compute. -/
@[extern "native"] opaque str._override (pre : Name) (str : String) : Name
@[extern "native"] opaque num._override (pre : Name) (i : Nat) : Name
attribute [implemented_by str._override] str
attribute [implemented_by num._override] num
abbrev mkStr (p : Name) (s : String) : Name := .str p s
abbrev mkNum (p : Name) (i : Nat) : Name := .num p i
@[extern "native"] opaque mkSimple (s : String) : Name
@[extern "native"] opaque mkStr1 (a : String) : Name
@[extern "native"] opaque mkStr2 (a b : String) : Name
@[extern "native"] opaque mkStr3 (a b c : String) : Name
@[extern "native"] opaque mkStr4 (a b c d : String) : Name
@[extern "native"] opaque mkStr5 (a b c d e : String) : Name
@[extern "native"] opaque mkStr6 (a b c d e f : String) : Name
end Name

inductive ParserDescr where
  | const (name : Name)
  | unary (name : Name) (p : ParserDescr)
  | binary (name : Name) (p₁ p₂ : ParserDescr)
  | node (kind : Name) (prec : Nat) (p : ParserDescr)
  | trailingNode (kind : Name) (prec lhsPrec : Nat) (p : ParserDescr)
  | symbol (val : String)
  | nonReservedSymbol (val : String) (includeIdent : Bool)
  | cat (catName : Name) (rbp : Nat)
  | parser (declName : Name)
  | nodeWithAntiquot (name : String) (kind : Name) (p : ParserDescr)
  | sepBy (p : ParserDescr) (sep : String) (psep : ParserDescr) (allowTrailingSep : Bool)
  | sepBy1 (p : ParserDescr) (sep : String) (psep : ParserDescr) (allowTrailingSep : Bool)
  | unicodeSymbol (val asciiVal : String) (preserveForPP : Bool)
instance : Inhabited ParserDescr := ⟨.const .anonymous⟩
abbrev TrailingParserDescr := ParserDescr
structure Parser.Category where
  mk ::

abbrev SyntaxNodeKind := Name
structure Position where
  mk ::
  byteIdx : Nat
structure Slice where
  mk ::
  str : String
  startPos : Position
  stopPos : Position
instance : Inhabited Slice := ⟨"", ⟨0⟩, ⟨0⟩⟩
@[extern "native"] opaque _root_.String.toRawSubstring' (s : String) : Slice
@[extern "native"] opaque _root_.String.toRawSubstring (s : String) : Slice
inductive SourceInfo where
  | original (leading : Slice) (pos : Position) (trailing : Slice) (endPos : Position)
  | synthetic (pos : Position) (endPos : Position) (canonical : Bool)
  | none
inductive Syntax.Preresolved where
  | «namespace» (ns : Name)
  | decl (n : Name) (fields : List String)
instance : Inhabited SourceInfo := ⟨.none⟩
inductive Syntax where
  | missing : Syntax
  | node (info : SourceInfo) (kind : SyntaxNodeKind) (args : Array Syntax) : Syntax
  | atom (info : SourceInfo) (val : String) : Syntax
  | ident (info : SourceInfo) (rawVal : Slice) (val : Name) (preresolved : List Syntax.Preresolved) : Syntax
instance : Inhabited Syntax := ⟨.missing⟩
end Lean
abbrev autoParam (α : Sort u) (tactic : Lean.Syntax) : Sort u := α

@[extern "native"] opaque Array.mkEmpty {α : Type u} (c : Nat) : Array α
def Array.empty {α : Type u} : Array α := Array.mkEmpty 0
@[extern "native"] opaque Array.push {α : Type u} (a : Array α) (v : α) : Array α

/-! ## Monads, as far as macros need them -/

class Functor (f : Type u → Type v) where
  map {α β : Type u} : (α → β) → f α → f β
  mapConst {α β : Type u} : α → f β → f α := fun a => map (fun _ => a)
class Pure (f : Type u → Type v) where
  pure {α : Type u} : α → f α
export Pure (pure)
class Seq (f : Type u → Type v) where
  seq {α β : Type u} : f (α → β) → (Unit → f α) → f β
class SeqLeft (f : Type u → Type v) where
  seqLeft {α β : Type u} : f α → (Unit → f β) → f α
class SeqRight (f : Type u → Type v) where
  seqRight {α β : Type u} : f α → (Unit → f β) → f β
class Bind (m : Type u → Type v) where
  bind {α β : Type u} : m α → (α → m β) → m β
export Bind (bind)
class Applicative (f : Type u → Type v) extends Functor f, Pure f, Seq f, SeqLeft f, SeqRight f where
  map := fun g a => seq (pure g) fun _ => a
  seqLeft := fun a b => seq (map (Function.const _) a) b
  seqRight := fun a b => seq (map (Function.const _ id) a) b
class Monad (m : Type u → Type v) extends Applicative m, Bind m where
  map := fun g a => bind a fun x => pure (g x)
  seq := fun g a => bind g fun h => bind (a ()) fun x => pure (h x)
  seqLeft := fun a b => bind a fun x => bind (b ()) fun _ => pure x
  seqRight := fun a b => bind a fun _ => b ()
class MonadExceptOf (ε : semiOutParam (Type u)) (m : Type v → Type w) where
  throw {α : Type v} : ε → m α
  tryCatch {α : Type v} : m α → (ε → m α) → m α
class MonadExcept (ε : outParam (Type u)) (m : Type v → Type w) where
  throw {α : Type v} : ε → m α
  tryCatch {α : Type v} : m α → (ε → m α) → m α
export MonadExcept (throw tryCatch)
instance instMonadExceptOfMonadExceptOf (ε : outParam (Type u)) (m : Type v → Type w) [MonadExceptOf ε m] : MonadExcept ε m :=
  ⟨MonadExceptOf.throw, MonadExceptOf.tryCatch⟩

inductive EStateM.Result (ε σ α : Type u) : Type u where
  | ok : α → σ → EStateM.Result ε σ α
  | error : ε → σ → EStateM.Result ε σ α
def EStateM (ε σ α : Type u) := σ → EStateM.Result ε σ α
instance EStateM.instMonad {ε σ : Type u} : Monad (EStateM ε σ) where
  pure a := fun s => .ok a s
  bind a f := fun s => match a s with
    | .ok x s => f x s
    | .error e s => .error e s
instance EStateM.instMonadExceptOf {ε σ : Type u} : MonadExceptOf ε (EStateM ε σ) where
  throw e := fun s => .error e s
  tryCatch a f := fun s => match a s with
    | .ok x s => .ok x s
    | .error e s => f e s
def ReaderT (ρ : Type u) (m : Type u → Type v) (α : Type u) := ρ → m α
instance ReaderT.instMonad {ρ : Type u} {m : Type u → Type v} [Monad m] : Monad (ReaderT ρ m) where
  pure a := fun _ => pure a
  bind a f := fun r => bind (a r) fun x => f x r
instance ReaderT.instMonadExceptOf {ε ρ : Type u} {m : Type u → Type v} [MonadExceptOf ε m] : MonadExceptOf ε (ReaderT ρ m) where
  throw e := fun _ => MonadExceptOf.throw e
  tryCatch a f := fun r => MonadExceptOf.tryCatch (a r) fun e => f e r

/-! ## Coercions -/

class Coe (α : semiOutParam (Sort u)) (β : Sort v) where
  coe : α → β
class CoeTC (α : Sort u) (β : Sort v) where
  coe : α → β
class CoeOut (α : Sort u) (β : semiOutParam (Sort v)) where
  coe : α → β
class CoeOTC (α : Sort u) (β : Sort v) where
  coe : α → β
class CoeHead (α : Sort u) (β : semiOutParam (Sort v)) where
  coe : α → β
class CoeHTC (α : Sort u) (β : Sort v) where
  coe : α → β
class CoeTail (α : semiOutParam (Sort u)) (β : Sort v) where
  coe : α → β
class CoeHTCT (α : Sort u) (β : Sort v) where
  coe : α → β
class CoeDep (α : Sort u) (_ : α) (β : Sort v) where
  coe : β
class CoeT (α : Sort u) (_ : α) (β : Sort v) where
  coe : β
class CoeFun (α : Sort u) (γ : outParam (α → Sort v)) where
  coe : (f : α) → γ f
class CoeSort (α : Sort u) (β : outParam (Sort v)) where
  coe : α → β
attribute [coe_decl] Coe.coe CoeTC.coe CoeOut.coe CoeOTC.coe CoeHead.coe CoeHTC.coe CoeTail.coe CoeHTCT.coe CoeDep.coe CoeT.coe CoeFun.coe CoeSort.coe
section
variable {α : Sort u} {β : Sort v} {γ : Sort w}
instance instCoeTC [Coe β γ] [CoeTC α β] : CoeTC α γ := ⟨fun a => Coe.coe (CoeTC.coe a : β)⟩
instance instCoeTC_1 [Coe α β] : CoeTC α β := ⟨fun a => Coe.coe a⟩
instance instCoeOTC [CoeOut α β] [CoeOTC β γ] : CoeOTC α γ := ⟨fun a => CoeOTC.coe (CoeOut.coe a : β)⟩
instance instCoeOTC_1 [CoeTC α β] : CoeOTC α β := ⟨fun a => CoeTC.coe a⟩
instance instCoeHTC [CoeHead α β] [CoeOTC β γ] : CoeHTC α γ := ⟨fun a => CoeOTC.coe (CoeHead.coe a : β)⟩
instance instCoeHTC_1 [CoeOTC α β] : CoeHTC α β := ⟨fun a => CoeOTC.coe a⟩
instance instCoeOTC_2 : CoeOTC α α := ⟨fun a => a⟩
instance instCoeHTC_2 : CoeHTC α α := ⟨fun a => a⟩
instance instCoeHTCT [CoeTail β γ] [CoeHTC α β] : CoeHTCT α γ := ⟨fun a => CoeTail.coe (CoeHTC.coe a : β)⟩
instance instCoeHTCT_1 [CoeHTC α β] : CoeHTCT α β := ⟨fun a => CoeHTC.coe a⟩
instance instCoeT {a : α} [CoeHTCT α β] : CoeT α a β := ⟨CoeHTCT.coe a⟩
instance instCoeT_1 {a : α} [CoeDep α a β] : CoeT α a β := ⟨CoeDep.coe a⟩
instance subtypeCoe {p : α → Prop} : CoeOut (Subtype p) α := ⟨fun a => a.val⟩
end

/-! ## Macros -/

namespace Lean
abbrev SyntaxNodeKinds := List SyntaxNodeKind
structure TSyntax (ks : SyntaxNodeKinds) where
  raw : Syntax
instance : Coe SyntaxNodeKind SyntaxNodeKinds := ⟨fun k => .cons k .nil⟩
instance {ks : SyntaxNodeKinds} : CoeOut (TSyntax ks) Syntax := ⟨TSyntax.raw⟩
instance : Coe (TSyntax (.cons `ident .nil)) (TSyntax (.cons `term .nil)) := ⟨fun t => ⟨t.raw⟩⟩
instance : Coe (TSyntax (.cons `num .nil)) (TSyntax (.cons `term .nil)) := ⟨fun t => ⟨t.raw⟩⟩
abbrev Term := TSyntax (.cons `term .nil)
abbrev MacroScope := Nat
structure Macro.Context where
  methods : Syntax
  quotContext : Name
  currMacroScope : MacroScope
  currRecDepth : Nat
  maxRecDepth : Nat
  ref : Syntax
structure Macro.State where
  macroScope : MacroScope
  traceMsgs : List (Prod Name String)
  expandedMacroDecls : List Name
inductive Macro.Exception where
  | error (ref : Syntax) (message : String)
  | unsupportedSyntax
abbrev MacroM := ReaderT Macro.Context (EStateM Macro.Exception Macro.State)
abbrev Macro := Syntax → MacroM Syntax
abbrev PrettyPrinter.UnexpandM := ReaderT Syntax (EStateM Unit Unit)
abbrev PrettyPrinter.Unexpander := Syntax → UnexpandM Syntax
instance : Inhabited Macro := ⟨fun stx => pure stx⟩
instance : Inhabited PrettyPrinter.Unexpander := ⟨fun stx => pure stx⟩

class MonadRef (m : Type → Type) where
  getRef : m Syntax
  withRef {α : Type} : Syntax → m α → m α
export MonadRef (getRef)
def withRef {m : Type → Type} [Monad m] [MonadRef m] {α : Type} (ref : Syntax) (a : m α) : m α :=
  MonadRef.withRef ref a
class MonadQuotation (m : Type → Type) extends MonadRef m where
  getCurrMacroScope : m MacroScope
  getContext : m Name
  withFreshMacroScope {α : Type} : m α → m α
export MonadQuotation (getCurrMacroScope)
instance Macro.instMonadQuotation : MonadQuotation MacroM where
  getRef := fun c s => .ok c.ref s
  withRef := fun r a c s => a ⟨c.methods, c.quotContext, c.currMacroScope, c.currRecDepth, c.maxRecDepth, r⟩ s
  getCurrMacroScope := fun c s => .ok c.currMacroScope s
  getContext := fun c s => .ok c.quotContext s
  withFreshMacroScope := fun a => a
instance PrettyPrinter.instMonadQuotation : MonadQuotation PrettyPrinter.UnexpandM where
  getRef := fun c s => .ok c s
  withRef := fun r a _ s => a r s
  getCurrMacroScope := pure 0
  getContext := pure `_fakeMod
  withFreshMacroScope := fun a => a
@[extern "native"] opaque SourceInfo.fromRef (ref : Syntax) (canonical : Bool) : SourceInfo
def MonadRef.mkInfoFromRefPos {m : Type → Type} [Monad m] [MonadRef m] : m SourceInfo :=
  bind getRef fun r => pure (SourceInfo.fromRef r false)
@[extern "native"] opaque addMacroScope (mainModule n : Name) (scp : MacroScope) : Name
@[extern "native"] opaque replaceRef (ref oldRef : Syntax) : Syntax
namespace Syntax
@[extern "native"] opaque getArg (stx : Syntax) (i : Nat) : Syntax
@[extern "native"] opaque getArgs (stx : Syntax) : Array Syntax
@[extern "native"] opaque isOfKind (stx : Syntax) (k : SyntaxNodeKind) : Bool
@[extern "native"] opaque matchesNull (stx : Syntax) (n : Nat) : Bool
@[extern "native"] opaque matchesIdent (stx : Syntax) (id : Name) : Bool
@[extern "native"] opaque _root_.Lean.mkAtom (val : String) : Syntax
@[extern "native"] opaque mkCApp (fn : Name) (args : Array Syntax) : Syntax
def node1 (i : SourceInfo) (k : SyntaxNodeKind) (a0 : Syntax) : Syntax :=
  .node i k (Array.push (Array.mkEmpty 1) a0)
def node2 (i : SourceInfo) (k : SyntaxNodeKind) (a0 a1 : Syntax) : Syntax :=
  .node i k (Array.push (Array.push (Array.mkEmpty 2) a0) a1)
def node3 (i : SourceInfo) (k : SyntaxNodeKind) (a0 a1 a2 : Syntax) : Syntax :=
  .node i k (Array.push (Array.push (Array.push (Array.mkEmpty 3) a0) a1) a2)
def node4 (i : SourceInfo) (k : SyntaxNodeKind) (a0 a1 a2 a3 : Syntax) : Syntax :=
  .node i k (Array.push (Array.push (Array.push (Array.push (Array.mkEmpty 4) a0) a1) a2) a3)
def node5 (i : SourceInfo) (k : SyntaxNodeKind) (a0 a1 a2 a3 a4 : Syntax) : Syntax :=
  .node i k (Array.push (Array.push (Array.push (Array.push (Array.push (Array.mkEmpty 5) a0) a1) a2) a3) a4)
def node6 (i : SourceInfo) (k : SyntaxNodeKind) (a0 a1 a2 a3 a4 a5 : Syntax) : Syntax :=
  .node i k (Array.push (Array.push (Array.push (Array.push (Array.push (Array.push (Array.mkEmpty 6) a0) a1) a2) a3) a4) a5)
def node7 (i : SourceInfo) (k : SyntaxNodeKind) (a0 a1 a2 a3 a4 a5 a6 : Syntax) : Syntax :=
  .node i k (Array.push (Array.push (Array.push (Array.push (Array.push (Array.push (Array.push (Array.mkEmpty 7) a0) a1) a2) a3) a4) a5) a6)
def node8 (i : SourceInfo) (k : SyntaxNodeKind) (a0 a1 a2 a3 a4 a5 a6 a7 : Syntax) : Syntax :=
  .node i k (Array.push (Array.push (Array.push (Array.push (Array.push (Array.push (Array.push (Array.push (Array.mkEmpty 8) a0) a1) a2) a3) a4) a5) a6) a7)
end Syntax
end Lean

/-! Categories of syntax that the parsers below add to. -/

declare_syntax_cat binderPred
declare_syntax_cat rawStx
declare_syntax_cat rcasesPat
declare_syntax_cat rintroPat


open Lean PrettyPrinter

namespace Lean
@[extern "native"] opaque binderIdent : ParserDescr
@[extern "native"] opaque unbracketedExplicitBinders : ParserDescr
@[extern "native"] opaque bracketedExplicitBinders : ParserDescr
@[extern "native"] opaque explicitBinders : ParserDescr
@[extern "native"] opaque calcFirstStep : ParserDescr
@[extern "native"] opaque calcStep : ParserDescr
@[extern "native"] opaque calcSteps : ParserDescr
@[extern "native", term_parser 1000] opaque «calc» : ParserDescr
@[extern "native", tactic_parser 1000] opaque calcTactic : ParserDescr
@[extern "native", tactic_parser 1000] opaque cdot : ParserDescr
@[extern "native"] opaque cdotTk : ParserDescr
end Lean

/-! ## Syntax of syntax: repetitions, precedences, priorities -/

@[extern "native", stx_parser 1000] opaque «stx_*» : TrailingParserDescr
@[extern "native", macro «stx_*»] opaque «_aux_Init_Notation___macroRules_stx_*_1» : Macro
@[extern "native", stx_parser 1000] opaque «stx_+» : TrailingParserDescr
@[extern "native", macro «stx_+»] opaque «_aux_Init_Notation___macroRules_stx_+_1» : Macro
@[extern "native", stx_parser 1000] opaque stx_? : TrailingParserDescr
@[extern "native", macro stx_?] opaque _aux_Init_Notation___macroRules_stx_?_1 : Macro
@[extern "native", stx_parser 1000] opaque «stx_,*» : TrailingParserDescr
@[extern "native", macro «stx_,*»] opaque «_aux_Init_Notation___macroRules_stx_,*_1» : Macro
@[extern "native", stx_parser 1000] opaque «stx_,+» : TrailingParserDescr
@[extern "native", macro «stx_,+»] opaque «_aux_Init_Notation___macroRules_stx_,+_1» : Macro
@[extern "native", stx_parser 1000] opaque «stx_,*,?» : TrailingParserDescr
@[extern "native", macro «stx_,*,?»] opaque «_aux_Init_Notation___macroRules_stx_,*,?_1» : Macro
@[extern "native", stx_parser 1000] opaque «stx_,+,?» : TrailingParserDescr
@[extern "native", macro «stx_,+,?»] opaque «_aux_Init_Notation___macroRules_stx_,+,?_1» : Macro
@[extern "native", stx_parser 1000] opaque stx!_ : ParserDescr
@[extern "native", macro stx!_] opaque _aux_Init_Notation___macroRules_stx!__1 : Macro
@[extern "native", stx_parser 1000] opaque «stx_<|>_» : TrailingParserDescr
@[extern "native", macro «stx_<|>_»] opaque «_aux_Init_Notation___macroRules_stx_<|>__1» : Macro
@[extern "native", prec_parser 1000] opaque precMax : ParserDescr
@[extern "native", macro precMax] opaque _aux_Init_Notation___macroRules_precMax_1 : Macro
@[extern "native", prec_parser 1000] opaque precArg : ParserDescr
@[extern "native", macro precArg] opaque _aux_Init_Notation___macroRules_precArg_1 : Macro
@[extern "native", prec_parser 1000] opaque precLead : ParserDescr
@[extern "native", macro precLead] opaque _aux_Init_Notation___macroRules_precLead_1 : Macro
@[extern "native", prec_parser 1000] opaque precMin : ParserDescr
@[extern "native", macro precMin] opaque _aux_Init_Notation___macroRules_precMin_1 : Macro
@[extern "native", prec_parser 1000] opaque precMin1 : ParserDescr
@[extern "native", macro precMin1] opaque _aux_Init_Notation___macroRules_precMin1_1 : Macro
@[extern "native", prec_parser 1000] opaque «prec(_)» : ParserDescr
@[extern "native", macro «prec(_)»] opaque «_aux_Init_Notation___macroRules_prec(_)_1» : Macro
@[extern "native", prio_parser 1000] opaque prioLow : ParserDescr
@[extern "native", macro prioLow] opaque _aux_Init_Notation___macroRules_prioLow_1 : Macro
@[extern "native", prio_parser 1000] opaque prioMid : ParserDescr
@[extern "native", macro prioMid] opaque _aux_Init_Notation___macroRules_prioMid_1 : Macro
@[extern "native", prio_parser 1000] opaque prioHigh : ParserDescr
@[extern "native", macro prioHigh] opaque _aux_Init_Notation___macroRules_prioHigh_1 : Macro
@[extern "native", prio_parser 1000] opaque prioDefault : ParserDescr
@[extern "native", macro prioDefault] opaque _aux_Init_Notation___macroRules_prioDefault_1 : Macro
@[extern "native", prio_parser 1000] opaque «prio(_)» : ParserDescr
@[extern "native", macro «prio(_)»] opaque «_aux_Init_Notation___macroRules_prio(_)_1» : Macro

/-! ## Binders with a condition: `∀ x < n, p x` and the like -/

namespace Lean
@[extern "native", term_parser 1000] opaque «term∀__,_» : ParserDescr
@[extern "native", term_parser 1000] opaque «term∃__,_» : ParserDescr
@[extern "native", term_parser 1000] opaque «termSatisfies_binder_pred%__» : ParserDescr
@[extern "native", binderPred_parser 1000] opaque «binderPred<_» : ParserDescr
@[extern "native", binderPred_parser 1000] opaque «binderPred>_» : ParserDescr
@[extern "native", binderPred_parser 1000] opaque «binderPred≤_» : ParserDescr
@[extern "native", binderPred_parser 1000] opaque «binderPred≥_» : ParserDescr
@[extern "native", binderPred_parser 1000] opaque «binderPred≠_» : ParserDescr
@[extern "native", binderPred_parser 1000] opaque «binderPred∈_» : ParserDescr
@[extern "native", binderPred_parser 1000] opaque «binderPred∉_» : ParserDescr
@[extern "native", macro «term∀__,_»] opaque «_aux_Init_BinderPredicates___macroRules_Lean_term∀__,__1» : Macro
@[extern "native", macro «term∃__,_»] opaque «_aux_Init_BinderPredicates___macroRules_Lean_term∃__,__1» : Macro
@[extern "native", macro «termSatisfies_binder_pred%__»] opaque «_aux_Init_BinderPredicates___macroRules_Lean_termSatisfies_binder_pred%___1» : Macro
@[extern "native", macro «termSatisfies_binder_pred%__»] opaque «_aux_Init_BinderPredicates___macroRules_Lean_termSatisfies_binder_pred%___2» : Macro
@[extern "native", macro «termSatisfies_binder_pred%__»] opaque «_aux_Init_BinderPredicates___macroRules_Lean_termSatisfies_binder_pred%___3» : Macro
@[extern "native", macro «termSatisfies_binder_pred%__»] opaque «_aux_Init_BinderPredicates___macroRules_Lean_termSatisfies_binder_pred%___4» : Macro
@[extern "native", macro «termSatisfies_binder_pred%__»] opaque «_aux_Init_BinderPredicates___macroRules_Lean_termSatisfies_binder_pred%___5» : Macro
@[extern "native", macro «termSatisfies_binder_pred%__»] opaque «_aux_Init_BinderPredicates___macroRules_Lean_termSatisfies_binder_pred%___6» : Macro
@[extern "native", macro «termSatisfies_binder_pred%__»] opaque «_aux_Init_BinderPredicates___macroRules_Lean_termSatisfies_binder_pred%___7» : Macro
@[extern "native", macro «termSatisfies_binder_pred%__»] opaque «_aux_Init_BinderPredicates___macroRules_Lean_termSatisfies_binder_pred%___8» : Macro
@[extern "native", macro «termSatisfies_binder_pred%__»] opaque «_aux_Init_BinderPredicates___macroRules_Lean_termSatisfies_binder_pred%___9» : Macro
@[extern "native", macro «termSatisfies_binder_pred%__»] opaque «_aux_Init_BinderPredicates___macroRules_Lean_termSatisfies_binder_pred%___10» : Macro
@[extern "native", macro «termSatisfies_binder_pred%__»] opaque «_aux_Init_BinderPredicates___macroRules_Lean_termSatisfies_binder_pred%___11» : Macro
end Lean

/-! ## Notation

The parsers, the macros behind them and the printers of goals are Lean's own compiled ones, under Lean's names. -/

@[extern "native", term_parser 1000] opaque «term_=_» : TrailingParserDescr
@[extern "native", macro «term_=_»] opaque «_aux_Init_Notation___macroRules_term_=__1» : Macro
@[extern "native", macro «term_=_»] opaque «_aux_Init_Notation___macroRules_term_=__2» : Macro
@[extern "native", app_unexpander Eq] opaque _aux_Init_Notation___unexpand_Eq_1 : Unexpander
@[extern "native", term_parser 1000] opaque «term_≠_» : TrailingParserDescr
@[extern "native", macro «term_≠_»] opaque «_aux_Init_Core___macroRules_term_≠__1» : Macro
@[extern "native", macro «term_≠_»] opaque «_aux_Init_Core___macroRules_term_≠__2» : Macro
@[extern "native", app_unexpander Ne] opaque _aux_Init_Core___unexpand_Ne_1 : Unexpander
@[extern "native", term_parser 1000] opaque «term_≍_» : TrailingParserDescr
@[extern "native", macro «term_≍_»] opaque «_aux_Init_Notation___macroRules_term_≍__1» : Macro
@[extern "native", app_unexpander HEq] opaque _aux_Init_Notation___unexpand_HEq_1 : Unexpander
@[extern "native", term_parser 1000] opaque «term_∧_» : TrailingParserDescr
@[extern "native", macro «term_∧_»] opaque «_aux_Init_Notation___macroRules_term_∧__1» : Macro
@[extern "native", app_unexpander And] opaque _aux_Init_Notation___unexpand_And_1 : Unexpander
@[extern "native", term_parser 1000] opaque «term_∨_» : TrailingParserDescr
@[extern "native", macro «term_∨_»] opaque «_aux_Init_Notation___macroRules_term_∨__1» : Macro
@[extern "native", app_unexpander Or] opaque _aux_Init_Notation___unexpand_Or_1 : Unexpander
@[extern "native", term_parser 1000] opaque «term¬_» : ParserDescr
@[extern "native", macro «term¬_»] opaque «_aux_Init_Notation___macroRules_term¬__1» : Macro
@[extern "native", app_unexpander Not] opaque _aux_Init_Notation___unexpand_Not_1 : Unexpander
@[extern "native", term_parser 1000] opaque «term_↔_» : TrailingParserDescr
@[extern "native", macro «term_↔_»] opaque «_aux_Init_Core___macroRules_term_↔__1» : Macro
@[extern "native", app_unexpander Iff] opaque _aux_Init_Core___unexpand_Iff_1 : Unexpander
@[extern "native", app_unexpander Iff] opaque _aux_Init_Core___unexpand_Iff_2 : Unexpander
@[extern "native", term_parser 1000] opaque «term_<->_» : TrailingParserDescr
@[extern "native", macro «term_<->_»] opaque «_aux_Init_Core___macroRules_term_<->__1» : Macro
@[extern "native", term_parser 1000] opaque «term_×_» : TrailingParserDescr
@[extern "native", macro «term_×_»] opaque «_aux_Init_Notation___macroRules_term_×__1» : Macro
@[extern "native", macro «term_×_»] opaque «_aux_Init_NotationExtra___macroRules_term_×__1_1» : Macro
@[extern "native", app_unexpander Prod] opaque _aux_Init_Notation___unexpand_Prod_1 : Unexpander
@[extern "native", term_parser 1000] opaque «term_≤_» : TrailingParserDescr
@[extern "native", macro «term_≤_»] opaque «_aux_Init_Notation___macroRules_term_≤__1» : Macro
@[extern "native", macro «term_≤_»] opaque «_aux_Init_Notation___macroRules_term_≤__2» : Macro
@[extern "native", app_unexpander LE.le] opaque _aux_Init_Notation___unexpand_LE_le_1 : Unexpander
@[extern "native", app_unexpander LE.le] opaque _aux_Init_Notation___unexpand_LE_le_2 : Unexpander
@[extern "native", term_parser 1000] opaque «term_<=_» : TrailingParserDescr
@[extern "native", macro «term_<=_»] opaque «_aux_Init_Notation___macroRules_term_<=__1» : Macro
@[extern "native", macro «term_<=_»] opaque «_aux_Init_Notation___macroRules_term_<=__2» : Macro
@[extern "native", term_parser 1000] opaque «term_<_» : TrailingParserDescr
@[extern "native", macro «term_<_»] opaque «_aux_Init_Notation___macroRules_term_<__1» : Macro
@[extern "native", macro «term_<_»] opaque «_aux_Init_Notation___macroRules_term_<__2» : Macro
@[extern "native", app_unexpander LT.lt] opaque _aux_Init_Notation___unexpand_LT_lt_1 : Unexpander
@[extern "native", term_parser 1000] opaque «term_≥_» : TrailingParserDescr
@[extern "native", macro «term_≥_»] opaque «_aux_Init_Notation___macroRules_term_≥__1» : Macro
@[extern "native", macro «term_≥_»] opaque «_aux_Init_Notation___macroRules_term_≥__2» : Macro
@[extern "native", app_unexpander GE.ge] opaque _aux_Init_Notation___unexpand_GE_ge_1 : Unexpander
@[extern "native", app_unexpander GE.ge] opaque _aux_Init_Notation___unexpand_GE_ge_2 : Unexpander
@[extern "native", term_parser 1000] opaque «term_>=_» : TrailingParserDescr
@[extern "native", macro «term_>=_»] opaque «_aux_Init_Notation___macroRules_term_>=__1» : Macro
@[extern "native", macro «term_>=_»] opaque «_aux_Init_Notation___macroRules_term_>=__2» : Macro
@[extern "native", term_parser 1000] opaque «term_>_» : TrailingParserDescr
@[extern "native", macro «term_>_»] opaque «_aux_Init_Notation___macroRules_term_>__1» : Macro
@[extern "native", macro «term_>_»] opaque «_aux_Init_Notation___macroRules_term_>__2» : Macro
@[extern "native", app_unexpander GT.gt] opaque _aux_Init_Notation___unexpand_GT_gt_1 : Unexpander
@[extern "native", term_parser 1000] opaque «term_==_» : TrailingParserDescr
@[extern "native", macro «term_==_»] opaque «_aux_Init_Notation___macroRules_term_==__1» : Macro
@[extern "native", macro «term_==_»] opaque «_aux_Init_Notation___macroRules_term_==__2» : Macro
@[extern "native", app_unexpander BEq.beq] opaque _aux_Init_Notation___unexpand_BEq_beq_1 : Unexpander
@[extern "native", term_parser 1000] opaque «term_!=_» : TrailingParserDescr
@[extern "native", macro «term_!=_»] opaque «_aux_Init_Core___macroRules_term_!=__1» : Macro
@[extern "native", macro «term_!=_»] opaque «_aux_Init_Core___macroRules_term_!=__2» : Macro
@[extern "native", app_unexpander bne] opaque _aux_Init_Core___unexpand_bne_1 : Unexpander
@[extern "native", term_parser 1000] opaque «term_+_» : TrailingParserDescr
@[extern "native", macro «term_+_»] opaque «_aux_Init_Notation___macroRules_term_+__1» : Macro
@[extern "native", macro «term_+_»] opaque «_aux_Init_Notation___macroRules_term_+__2» : Macro
@[extern "native", app_unexpander HAdd.hAdd] opaque _aux_Init_Notation___unexpand_HAdd_hAdd_1 : Unexpander
@[extern "native", term_parser 1000] opaque «term_-_» : TrailingParserDescr
@[extern "native", macro «term_-_»] opaque «_aux_Init_Notation___macroRules_term_-__1» : Macro
@[extern "native", macro «term_-_»] opaque «_aux_Init_Notation___macroRules_term_-__2» : Macro
@[extern "native", app_unexpander HSub.hSub] opaque _aux_Init_Notation___unexpand_HSub_hSub_1 : Unexpander
@[extern "native", term_parser 1000] opaque «term_*_» : TrailingParserDescr
@[extern "native", macro «term_*_»] opaque «_aux_Init_Notation___macroRules_term_*__1» : Macro
@[extern "native", macro «term_*_»] opaque «_aux_Init_Notation___macroRules_term_*__2» : Macro
@[extern "native", app_unexpander HMul.hMul] opaque _aux_Init_Notation___unexpand_HMul_hMul_1 : Unexpander
@[extern "native", term_parser 1000] opaque «term_/_» : TrailingParserDescr
@[extern "native", macro «term_/_»] opaque «_aux_Init_Notation___macroRules_term_/__1» : Macro
@[extern "native", macro «term_/_»] opaque «_aux_Init_Notation___macroRules_term_/__2» : Macro
@[extern "native", app_unexpander HDiv.hDiv] opaque _aux_Init_Notation___unexpand_HDiv_hDiv_1 : Unexpander
@[extern "native", term_parser 1000] opaque «term_%_» : TrailingParserDescr
@[extern "native", macro «term_%_»] opaque «_aux_Init_Notation___macroRules_term_%__1» : Macro
@[extern "native", macro «term_%_»] opaque «_aux_Init_Notation___macroRules_term_%__2» : Macro
@[extern "native", app_unexpander HMod.hMod] opaque _aux_Init_Notation___unexpand_HMod_hMod_1 : Unexpander
@[extern "native", term_parser 1000] opaque «term_^_» : TrailingParserDescr
@[extern "native", macro «term_^_»] opaque «_aux_Init_Notation___macroRules_term_^__1» : Macro
@[extern "native", macro «term_^_»] opaque «_aux_Init_Notation___macroRules_term_^__2» : Macro
@[extern "native", app_unexpander HPow.hPow] opaque _aux_Init_Notation___unexpand_HPow_hPow_1 : Unexpander
@[extern "native", term_parser 1000] opaque «term_∣_» : TrailingParserDescr
@[extern "native", macro «term_∣_»] opaque «_aux_Init_Notation___macroRules_term_∣__1» : Macro
@[extern "native", app_unexpander Dvd.dvd] opaque _aux_Init_Notation___unexpand_Dvd_dvd_1 : Unexpander
@[extern "native", term_parser 1000] opaque «term_++_» : TrailingParserDescr
@[extern "native", macro «term_++_»] opaque «_aux_Init_Notation___macroRules_term_++__1» : Macro
@[extern "native", macro «term_++_»] opaque «_aux_Init_Notation___macroRules_term_++__2» : Macro
@[extern "native", app_unexpander HAppend.hAppend] opaque _aux_Init_Notation___unexpand_HAppend_hAppend_1 : Unexpander
@[extern "native", term_parser 1000] opaque «term_::_» : TrailingParserDescr
@[extern "native", macro «term_::_»] opaque «_aux_Init_Notation___macroRules_term_::__1» : Macro
@[extern "native", app_unexpander List.cons] opaque _aux_Init_Notation___unexpand_List_cons_1 : Unexpander
@[extern "native", term_parser 1000] opaque «term_∈_» : TrailingParserDescr
@[extern "native", macro «term_∈_»] opaque «_aux_Init_Notation___macroRules_term_∈__1» : Macro
@[extern "native", app_unexpander Membership.mem] opaque _aux_Init_Notation___unexpand_Membership_mem_1 : Unexpander
@[extern "native", term_parser 1000] opaque «term_∉_» : TrailingParserDescr
@[extern "native", macro «term_∉_»] opaque «_aux_Init_Notation___macroRules_term_∉__1» : Macro
@[extern "native", term_parser 1000] opaque «term_∘_» : TrailingParserDescr
@[extern "native", macro «term_∘_»] opaque «_aux_Init_Notation___macroRules_term_∘__1» : Macro
@[extern "native", app_unexpander Function.comp] opaque _aux_Init_Notation___unexpand_Function_comp_1 : Unexpander
@[extern "native", term_parser 1000] opaque «term_&&_» : TrailingParserDescr
@[extern "native", macro «term_&&_»] opaque «_aux_Init_Notation___macroRules_term_&&__1» : Macro
@[extern "native", app_unexpander Bool.and] opaque _aux_Init_Notation___unexpand_Bool_and_1 : Unexpander
@[extern "native", term_parser 1000] opaque «term_||_» : TrailingParserDescr
@[extern "native", macro «term_||_»] opaque «_aux_Init_Notation___macroRules_term_||__1» : Macro
@[extern "native", app_unexpander Bool.or] opaque _aux_Init_Notation___unexpand_Bool_or_1 : Unexpander
@[extern "native", term_parser 1000] opaque term!_ : ParserDescr
@[extern "native", macro term!_] opaque _aux_Init_Notation___macroRules_term!__1 : Macro
@[extern "native", app_unexpander Bool.not] opaque _aux_Init_Notation___unexpand_Bool_not_1 : Unexpander
@[extern "native", term_parser 1000] opaque «term_|>_» : TrailingParserDescr
@[extern "native", macro «term_|>_»] opaque «_aux_Init_Notation___macroRules_term_|>__1» : Macro
@[extern "native", term_parser 1000] opaque «term_<|_» : TrailingParserDescr
@[extern "native", macro «term_<|_»] opaque «_aux_Init_Notation___macroRules_term_<|__1» : Macro
@[extern "native", term_parser 1000] opaque «term_$__» : TrailingParserDescr
@[extern "native", macro «term_$__»] opaque «_aux_Init_Notation___macroRules_term_$___1» : Macro
@[extern "native", term_parser 1000] opaque termIfThenElse : ParserDescr
@[extern "native", macro termIfThenElse] opaque _aux_Init_Notation___macroRules_termIfThenElse_1 : Macro
@[extern "native", term_parser 1000] opaque termDepIfThenElse : ParserDescr
@[extern "native", macro termDepIfThenElse] opaque _aux_Init_Notation___macroRules_termDepIfThenElse_1 : Macro
@[extern "native", term_parser 1000] opaque boolIfThenElse : ParserDescr
@[extern "native", macro boolIfThenElse] opaque _aux_Init_Notation___macroRules_boolIfThenElse_1 : Macro
@[extern "native", term_parser 1000] opaque «term‹_›» : ParserDescr
@[extern "native", macro «term‹_›»] opaque «_aux_Init_Tactics___macroRules_term‹_›_1» : Macro
@[extern "native", term_parser 1000] opaque «term∃_,_» : ParserDescr
@[extern "native", macro «term∃_,_»] opaque «_aux_Init_NotationExtra___macroRules_term∃_,__1» : Macro
@[extern "native", term_parser 1000] opaque «termExists_,_» : ParserDescr
@[extern "native", macro «termExists_,_»] opaque «_aux_Init_NotationExtra___macroRules_termExists_,__1» : Macro
@[extern "native", term_parser 1000] opaque «term{_:_//_}» : ParserDescr
@[extern "native", macro «term{_:_//_}»] opaque «_aux_Init_Notation___macroRules_term{_:_//_}_1» : Macro
@[extern "native", term_parser 1000] opaque «term[_]» : ParserDescr
@[extern "native", macro «term[_]»] opaque Lean.«_aux_Init_Data_List_Notation___macroRules_term[_]_1» : Macro
@[extern "native", term_parser 1000] opaque «term%[_|_]» : ParserDescr
@[extern "native", macro «term%[_|_]»] opaque «_aux_Init_NotationExtra___macroRules_term%[_|_]_1» : Macro
@[extern "native", app_unexpander Exists] opaque unexpandExists : Unexpander
@[extern "native", app_unexpander List.nil] opaque unexpandListNil : Unexpander
@[extern "native", app_unexpander List.cons] opaque unexpandListCons : Unexpander
@[extern "native", app_unexpander ite] opaque unexpandIte : Unexpander
@[extern "native", app_unexpander Subtype] opaque unexpandSubtype : Unexpander
@[extern "native", app_unexpander Prod.mk] opaque unexpandProdMk : Unexpander
@[extern "native", app_unexpander Unit.unit] opaque unexpandUnit : Unexpander
@[extern "native", app_unexpander Eq.rec] opaque unexpandEqRec : Unexpander
@[extern "native", app_unexpander Eq.ndrec] opaque unexpandEqNDRec : Unexpander

/-! ## Tactics

Their elaborators are native code, registered under the names of these parsers. -/

namespace Lean.Parser.Tactic
@[extern "native"] opaque locationWildcard : ParserDescr
@[extern "native"] opaque locationHyp : ParserDescr
@[extern "native"] opaque locationType : ParserDescr
@[extern "native"] opaque location : ParserDescr
@[extern "native"] opaque config : ParserDescr
@[extern "native"] opaque posConfigItem : ParserDescr
@[extern "native"] opaque negConfigItem : ParserDescr
@[extern "native"] opaque valConfigItem : ParserDescr
@[extern "native"] opaque configItem : ParserDescr
@[extern "native"] opaque optConfig : ParserDescr
@[extern "native"] opaque rwRule : ParserDescr
@[extern "native"] opaque rwRuleSeq : ParserDescr
@[extern "native"] opaque caseArg : ParserDescr
@[extern "native"] opaque inductionAltLHS : ParserDescr
@[extern "native"] opaque inductionAlt : ParserDescr
@[extern "native"] opaque inductionAlts : ParserDescr
@[extern "native"] opaque elimTarget : ParserDescr
@[extern "native"] opaque generalizeArg : ParserDescr
@[extern "native"] opaque simpPre : ParserDescr
@[extern "native"] opaque simpPost : ParserDescr
@[extern "native"] opaque simpLemma : ParserDescr
@[extern "native"] opaque simpErase : ParserDescr
@[extern "native"] opaque simpStar : ParserDescr
@[extern "native"] opaque simpArg : ParserDescr
@[extern "native"] opaque simpArgs : ParserDescr
@[extern "native"] opaque dsimpArg : ParserDescr
@[extern "native"] opaque dsimpArgs : ParserDescr
@[extern "native"] opaque discharger : ParserDescr
@[extern "native"] opaque simpaArgsRest : ParserDescr
@[extern "native"] opaque rcasesPatMed : ParserDescr
@[extern "native"] opaque rcasesPatLo : ParserDescr
@[extern "native", tactic_parser 1000] opaque exact : ParserDescr
@[extern "native", tactic_parser 1000] opaque intro : ParserDescr
@[extern "native", tactic_parser 1000] opaque intros : ParserDescr
@[extern "native", tactic_parser 1000] opaque apply : ParserDescr
@[extern "native", tactic_parser 1000] opaque refine : ParserDescr
@[extern "native", tactic_parser 1000] opaque refine' : ParserDescr
@[extern "native", tactic_parser 1000] opaque constructor : ParserDescr
@[extern "native", tactic_parser 1000] opaque left : ParserDescr
@[extern "native", tactic_parser 1000] opaque right : ParserDescr
@[extern "native", tactic_parser 1000] opaque assumption : ParserDescr
@[extern "native", tactic_parser 1000] opaque contradiction : ParserDescr
@[extern "native", tactic_parser 1000] opaque cases : ParserDescr
@[extern "native", tactic_parser 1000] opaque induction : ParserDescr
@[extern "native", tactic_parser 1000] opaque case : ParserDescr
@[extern "native", tactic_parser 1000] opaque case' : ParserDescr
@[extern "native", tactic_parser 1000] opaque rename : ParserDescr
@[extern "native", tactic_parser 1000] opaque renameI : ParserDescr
@[extern "native", tactic_parser 1000] opaque revert : ParserDescr
@[extern "native", tactic_parser 1000] opaque clear : ParserDescr
@[extern "native", tactic_parser 1000] opaque subst : ParserDescr
@[extern "native", tactic_parser 1000] opaque substVars : ParserDescr
@[extern "native", tactic_parser 1000] opaque paren : ParserDescr
@[extern "native", tactic_parser 1000] opaque allGoals : ParserDescr
@[extern "native", tactic_parser 1000] opaque anyGoals : ParserDescr
@[extern "native", tactic_parser 1000] opaque focus : ParserDescr
@[extern "native", tactic_parser 1000] opaque skip : ParserDescr
@[extern "native", tactic_parser 1000] opaque done : ParserDescr
@[extern "native", tactic_parser 1000] opaque fail : ParserDescr
@[extern "native", tactic_parser 1000] opaque failIfSuccess : ParserDescr
@[extern "native", tactic_parser 1000] opaque first : ParserDescr
@[extern "native", tactic_parser 1000] opaque eqRefl : ParserDescr
@[extern "native", tactic_parser 1000] opaque tacticRfl : ParserDescr
@[extern "native", macro tacticRfl] opaque _aux_Init_Tactics___macroRules_Lean_Parser_Tactic_tacticRfl_1 : Macro
@[extern "native", macro tacticRfl] opaque _aux_Init_Tactics___macroRules_Lean_Parser_Tactic_tacticRfl_2 : Macro
@[extern "native", macro tacticRfl] opaque _aux_Init_Tactics___macroRules_Lean_Parser_Tactic_tacticRfl_3 : Macro
@[extern "native", macro tacticRfl] opaque _root_._aux_Init_Core___macroRules_Lean_Parser_Tactic_tacticRfl_1 : Macro
@[extern "native", tactic_parser 1000] opaque tacticRfl' : ParserDescr
@[extern "native", macro tacticRfl'] opaque _aux_Init_Tactics___macroRules_Lean_Parser_Tactic_tacticRfl'_1 : Macro
@[extern "native", tactic_parser 1000] opaque applyRfl : ParserDescr
@[extern "native", tactic_parser 1000] opaque withReducible : ParserDescr
@[extern "native", tactic_parser 1000] opaque withReducibleAndInstances : ParserDescr
@[extern "native", tactic_parser 1000] opaque withUnfoldingAll : ParserDescr
@[extern "native", tactic_parser 1000] opaque withAnnotateState : ParserDescr
@[extern "native", tactic_parser 1000] opaque traceState : ParserDescr
@[extern "native", tactic_parser 1000] opaque tacticTry_ : ParserDescr
@[extern "native", macro tacticTry_] opaque _aux_Init_Tactics___macroRules_Lean_Parser_Tactic_tacticTry__1 : Macro
@[extern "native", tactic_parser 1000] opaque «tactic_<;>_» : TrailingParserDescr
@[extern "native", macro «tactic_<;>_»] opaque «_aux_Init_Tactics___macroRules_Lean_Parser_Tactic_tactic_<;>__1» : Macro
@[extern "native", tactic_parser 1000] opaque tacticRepeat_ : ParserDescr
@[extern "native", tactic_parser 1000] opaque repeat' : ParserDescr
@[extern "native", tactic_parser 1000] opaque repeat1' : ParserDescr
@[extern "native", tactic_parser 1000] opaque rotateLeft : ParserDescr
@[extern "native", tactic_parser 1000] opaque rotateRight : ParserDescr
@[extern "native", tactic_parser 1000] opaque change : ParserDescr
@[extern "native", tactic_parser 1000] opaque rewriteSeq : ParserDescr
@[extern "native", tactic_parser 1000] opaque rwSeq : ParserDescr
@[extern "native", macro rwSeq] opaque _aux_Init_Tactics___macroRules_Lean_Parser_Tactic_rwSeq_1 : Macro
@[extern "native", tactic_parser 1000] opaque rwa : ParserDescr
@[extern "native", tactic_parser 1000] opaque rwaAt : ParserDescr
@[extern "native", tactic_parser 1000] opaque rwaAtLegacyLocation : ParserDescr
@[extern "native", macro rwaAtLegacyLocation] opaque _aux_Init_Tactics___macroRules_Lean_Parser_Tactic_rwaAtLegacyLocation_1 : Macro
@[extern "native", tactic_parser 1000] opaque tacticErw___ : ParserDescr
@[extern "native", macro tacticErw___] opaque _aux_Init_Meta___macroRules_Lean_Parser_Tactic_tacticErw____1 : Macro
@[extern "native", tactic_parser 1000] opaque injection : ParserDescr
@[extern "native", tactic_parser 1000] opaque injections : ParserDescr
@[extern "native", tactic_parser 1000] opaque generalize : ParserDescr
@[extern "native", tactic_parser 1000] opaque unfold : ParserDescr
@[extern "native", tactic_parser 1000] opaque delta : ParserDescr
@[extern "native", tactic_parser 1000] opaque split : ParserDescr
@[extern "native", tactic_parser 1000] opaque specialize : ParserDescr
@[extern "native", tactic_parser 1000] opaque tacticHave__ : ParserDescr
@[extern "native", macro tacticHave__] opaque _aux_Init_Tactics___macroRules_Lean_Parser_Tactic_tacticHave___1 : Macro
@[extern "native", tactic_parser 1000] opaque tacticHave' : ParserDescr
@[extern "native", macro tacticHave'] opaque _aux_Init_Tactics___macroRules_Lean_Parser_Tactic_tacticHave'_1 : Macro
@[extern "native", tactic_parser 1000] opaque tacticLet__ : ParserDescr
@[extern "native", macro tacticLet__] opaque _aux_Init_Tactics___macroRules_Lean_Parser_Tactic_tacticLet___1 : Macro
@[extern "native", tactic_parser 1000] opaque tacticSuffices_ : ParserDescr
@[extern "native", macro tacticSuffices_] opaque _aux_Init_Tactics___macroRules_Lean_Parser_Tactic_tacticSuffices__1 : Macro
@[extern "native", tactic_parser 1000] opaque «show» : ParserDescr
@[extern "native", tactic_parser 1000] opaque letrec : ParserDescr
@[extern "native", macro letrec] opaque _aux_Init_Tactics___macroRules_Lean_Parser_Tactic_letrec_1 : Macro
@[extern "native", tactic_parser 1000] opaque tacticRefine_lift_ : ParserDescr
@[extern "native", macro tacticRefine_lift_] opaque _aux_Init_Tactics___macroRules_Lean_Parser_Tactic_tacticRefine_lift__1 : Macro
@[extern "native", tactic_parser 1000] opaque tacticRefine_lift'_ : ParserDescr
@[extern "native", macro tacticRefine_lift'_] opaque _aux_Init_Tactics___macroRules_Lean_Parser_Tactic_tacticRefine_lift'__1 : Macro
@[extern "native", tactic_parser 1000] opaque «tacticExists_,,» : ParserDescr
@[extern "native", macro «tacticExists_,,»] opaque «_aux_Init_Tactics___macroRules_Lean_Parser_Tactic_tacticExists_,,_1» : Macro
@[extern "native", tactic_parser 1000] opaque «tacticNext_=>_» : ParserDescr
@[extern "native", macro «tacticNext_=>_»] opaque «_aux_Init_Tactics___macroRules_Lean_Parser_Tactic_tacticNext_=>__1» : Macro
@[extern "native", tactic_parser 1000] opaque tacticSorry : ParserDescr
@[extern "native", macro tacticSorry] opaque _aux_Init_Tactics___macroRules_Lean_Parser_Tactic_tacticSorry_1 : Macro
@[extern "native", tactic_parser 1000] opaque tacticAdmit : ParserDescr
@[extern "native", macro tacticAdmit] opaque _aux_Init_Tactics___macroRules_Lean_Parser_Tactic_tacticAdmit_1 : Macro
@[extern "native", tactic_parser 1000] opaque tacticExfalso : ParserDescr
@[extern "native", macro tacticExfalso] opaque _aux_Init_Tactics___macroRules_Lean_Parser_Tactic_tacticExfalso_1 : Macro
@[extern "native", tactic_parser 1000] opaque tacticTrivial : ParserDescr
@[extern "native", macro tacticTrivial] opaque _aux_Init_Tactics___macroRules_Lean_Parser_Tactic_tacticTrivial_1 : Macro
@[extern "native", macro tacticTrivial] opaque _aux_Init_Tactics___macroRules_Lean_Parser_Tactic_tacticTrivial_2 : Macro
@[extern "native", macro tacticTrivial] opaque _aux_Init_Tactics___macroRules_Lean_Parser_Tactic_tacticTrivial_3 : Macro
@[extern "native", macro tacticTrivial] opaque _aux_Init_Tactics___macroRules_Lean_Parser_Tactic_tacticTrivial_4 : Macro
@[extern "native", macro tacticTrivial] opaque _aux_Init_Tactics___macroRules_Lean_Parser_Tactic_tacticTrivial_5 : Macro
@[extern "native", macro tacticTrivial] opaque _aux_Init_Tactics___macroRules_Lean_Parser_Tactic_tacticTrivial_6 : Macro
@[extern "native", tactic_parser 1000] opaque tacticInfer_instance : ParserDescr
@[extern "native", macro tacticInfer_instance] opaque _aux_Init_Tactics___macroRules_Lean_Parser_Tactic_tacticInfer_instance_1 : Macro
@[extern "native", tactic_parser 1000] opaque «tacticNomatch_,,» : ParserDescr
@[extern "native", macro «tacticNomatch_,,»] opaque «_aux_Init_Tactics___macroRules_Lean_Parser_Tactic_tacticNomatch_,,_1» : Macro
@[extern "native", tactic_parser 1000] opaque tacticNofun : ParserDescr
@[extern "native", macro tacticNofun] opaque _aux_Init_Tactics___macroRules_Lean_Parser_Tactic_tacticNofun_1 : Macro
@[extern "native", tactic_parser 1000] opaque decide : ParserDescr
@[extern "native", tactic_parser 1000] opaque simp : ParserDescr
@[extern "native", tactic_parser 1000] opaque simpAll : ParserDescr
@[extern "native", tactic_parser 1000] opaque dsimp : ParserDescr
@[extern "native", tactic_parser 1000] opaque simpa : ParserDescr
@[extern "native", rcasesPat_parser 1000] opaque rcasesPat.one : ParserDescr
@[extern "native", rcasesPat_parser 1000] opaque rcasesPat.ignore : ParserDescr
@[extern "native", rcasesPat_parser 1000] opaque rcasesPat.clear : ParserDescr
@[extern "native", rcasesPat_parser 1000] opaque rcasesPat.explicit : ParserDescr
@[extern "native", rcasesPat_parser 1000] opaque rcasesPat.tuple : ParserDescr
@[extern "native", rcasesPat_parser 1000] opaque rcasesPat.paren : ParserDescr
@[extern "native", rintroPat_parser 1000] opaque rintroPat.one : ParserDescr
@[extern "native", rintroPat_parser 1000] opaque rintroPat.binder : ParserDescr
@[extern "native", tactic_parser 1000] opaque rcases : ParserDescr
@[extern "native", tactic_parser 1000] opaque obtain : ParserDescr
@[extern "native", tactic_parser 1000] opaque rintro : ParserDescr
@[extern "native", tactic_parser 1000] opaque congr : ParserDescr
@[extern "native", tactic_parser 1000] opaque symm : ParserDescr
@[extern "native", tactic_parser 1000] opaque falseOrByContra : ParserDescr
@[extern "native", tactic_parser 1000] opaque letToHave : ParserDescr
@[extern "native", tactic_parser 1000] opaque tacticAnd_intros : ParserDescr
@[extern "native", macro tacticAnd_intros] opaque _aux_Init_Tactics___macroRules_Lean_Parser_Tactic_tacticAnd_intros_1 : Macro
@[extern "native", tactic_parser 1000] opaque tacIfThenElse : ParserDescr
@[extern "native", macro tacIfThenElse] opaque _aux_Init_TacticsExtra___macroRules_Lean_Parser_Tactic_tacIfThenElse_1 : Macro
@[extern "native", tactic_parser 1000] opaque tacDepIfThenElse : ParserDescr
@[extern "native", macro tacDepIfThenElse] opaque _aux_Init_TacticsExtra___macroRules_Lean_Parser_Tactic_tacDepIfThenElse_1 : Macro
@[extern "native", tactic_parser 1000] opaque exposeNames : ParserDescr
end Lean.Parser.Tactic
@[extern "native", tactic_parser 1000] opaque «tacticBy_cases_:_» : ParserDescr
@[extern "native", macro «tacticBy_cases_:_»] opaque «_aux_Init_ByCases___macroRules_tacticBy_cases_:__1» : Macro
@[extern "native", macro «tacticBy_cases_:_»] opaque «_aux_Init_ByCases___macroRules_tacticBy_cases_:__2» : Macro
@[extern "native", tactic_parser 1000] opaque tacticFunext___ : ParserDescr
@[extern "native", macro tacticFunext___] opaque _aux_Init_NotationExtra___macroRules_tacticFunext____1 : Macro

/-! ## Equality, for the tactics that look these up -/

def Eq.mp {α β : Sort u} (h : α = β) (a : α) : β := h ▸ a
def Eq.mpr {α β : Sort u} (h : α = β) (b : β) : α := h ▸ b
theorem Eq.substr {α : Sort u} {p : α → Prop} {a b : α} (h : b = a) (m : p a) : p b := h ▸ m
theorem Eq.mpr_prop {p q : Prop} (h : p = q) (hq : q) : p := h ▸ hq
theorem Eq.mpr_not {p q : Prop} (h : p = q) (hq : ¬q) : ¬p := h ▸ hq
@[simp] theorem id_eq {α : Sort u} (a : α) : id a = a := rfl
theorem cast_eq {α : Sort u} (h : α = α) (a : α) : cast h a = a := rfl
theorem Ne.symm {α : Sort u} {a b : α} (h : a ≠ b) : b ≠ a := fun e => h e.symm
theorem ne_of_eq_of_ne {α : Sort u} {a b c : α} (h : a = b) (k : b ≠ c) : a ≠ c := h ▸ k
theorem ne_of_ne_of_eq {α : Sort u} {a b c : α} (h : a ≠ b) (k : b = c) : a ≠ c := k ▸ h
theorem false_of_ne {α : Sort u} {a : α} (h : a ≠ a) : False := h rfl
theorem Eq.comm {α : Sort u} {a b : α} : a = b ↔ b = a := ⟨Eq.symm, Eq.symm⟩
theorem eq_comm {α : Sort u} {a b : α} : a = b ↔ b = a := Eq.comm
theorem heq_eq_eq {α : Sort u} (a b : α) : HEq a b = (a = b) := propext ⟨eq_of_heq, heq_of_eq⟩
theorem eq_of_heq_rec {α : Sort u} {a b : α} (h : HEq a b) : a = b := eq_of_heq h

class Trans.{i, j, k, a, b, c} {α : Sort a} {β : Sort b} {γ : Sort c} (r : α → β → Sort i) (s : β → γ → Sort j)
    (t : outParam (α → γ → Sort k)) where
  trans {a : α} {b : β} {c : γ} : r a b → s b c → t a c
export Trans (trans)
instance instTransEq {α : Sort u} {γ : Sort v} (r : α → γ → Sort w) : Trans Eq r r := ⟨fun h k => h ▸ k⟩
instance instTransEq_1 {α : Sort u} {γ : Sort v} (r : γ → α → Sort w) : Trans r Eq r := ⟨fun h k => k ▸ h⟩

/-! ## Connectives -/

theorem not_false : ¬False := id
theorem mt {a b : Prop} (h : a → b) (no : ¬b) : ¬a := fun ha => no (h ha)
theorem not_not_intro {p : Prop} (h : p) : ¬¬p := fun no => no h
def Not.elim {a : Prop} {b : Sort v} (no : ¬a) (h : a) : b := absurd h no
theorem not_not_em (p : Prop) : ¬¬(p ∨ ¬p) := fun no => no (.inr fun h => no (.inl h))

theorem And.symm {a b : Prop} (h : a ∧ b) : b ∧ a := ⟨h.right, h.left⟩
theorem And.comm {a b : Prop} : a ∧ b ↔ b ∧ a := ⟨And.symm, And.symm⟩
theorem and_comm {a b : Prop} : a ∧ b ↔ b ∧ a := And.comm
theorem and_assoc {a b c : Prop} : (a ∧ b) ∧ c ↔ a ∧ b ∧ c :=
  ⟨fun h => ⟨h.1.1, h.1.2, h.2⟩, fun h => ⟨⟨h.1, h.2.1⟩, h.2.2⟩⟩
theorem And.imp {a b c d : Prop} (f : a → c) (g : b → d) (h : a ∧ b) : c ∧ d := ⟨f h.1, g h.2⟩
def And.elim {a b : Prop} {c : Sort v} (f : a → b → c) (h : a ∧ b) : c := f h.1 h.2

theorem Or.elim {a b c : Prop} (h : a ∨ b) (left : a → c) (right : b → c) : c :=
  match h with
  | .inl ha => left ha
  | .inr hb => right hb
theorem Or.symm {a b : Prop} (h : a ∨ b) : b ∨ a := h.elim .inr .inl
theorem Or.comm {a b : Prop} : a ∨ b ↔ b ∨ a := ⟨Or.symm, Or.symm⟩
theorem or_comm {a b : Prop} : a ∨ b ↔ b ∨ a := Or.comm
theorem Or.imp {a b c d : Prop} (f : a → c) (g : b → d) (h : a ∨ b) : c ∨ d :=
  h.elim (fun x => .inl (f x)) (fun x => .inr (g x))
theorem or_assoc {a b c : Prop} : (a ∨ b) ∨ c ↔ a ∨ b ∨ c :=
  ⟨fun h => h.elim (fun k => k.imp id .inl) (fun k => .inr (.inr k)), fun h => h.elim (fun k => .inl (.inl k)) (fun k => k.imp .inr id)⟩
theorem Or.resolve_left {a b : Prop} (h : a ∨ b) (no : ¬a) : b := h.elim (fun k => absurd k no) id
theorem Or.resolve_right {a b : Prop} (h : a ∨ b) (no : ¬b) : a := h.elim id (fun k => absurd k no)

theorem Iff.refl (a : Prop) : a ↔ a := ⟨id, id⟩
theorem Iff.rfl {a : Prop} : a ↔ a := Iff.refl a
theorem Iff.symm {a b : Prop} (h : a ↔ b) : b ↔ a := ⟨h.mpr, h.mp⟩
theorem Iff.trans {a b c : Prop} (h : a ↔ b) (k : b ↔ c) : a ↔ c :=
  ⟨fun x => k.mp (h.mp x), fun x => h.mpr (k.mpr x)⟩
theorem Iff.of_eq {a b : Prop} (h : a = b) : a ↔ b := h ▸ Iff.rfl
theorem iff_of_eq {a b : Prop} (h : a = b) : a ↔ b := Iff.of_eq h
theorem Eq.to_iff {a b : Prop} (h : a = b) : a ↔ b := Iff.of_eq h
theorem Iff.comm {a b : Prop} : (a ↔ b) ↔ (b ↔ a) := ⟨Iff.symm, Iff.symm⟩
theorem iff_of_true {a b : Prop} (ha : a) (hb : b) : a ↔ b := ⟨fun _ => hb, fun _ => ha⟩
theorem iff_of_false {a b : Prop} (ha : ¬a) (hb : ¬b) : a ↔ b := ⟨fun h => absurd h ha, fun h => absurd h hb⟩
instance : Trans Iff Iff Iff := ⟨Iff.trans⟩
attribute [refl] Iff.refl
attribute [symm] Eq.symm Iff.symm

theorem Exists.elim {α : Sort u} {p : α → Prop} {b : Prop} (h : ∃ x, p x) (k : ∀ a, p a → b) : b :=
  match h with
  | ⟨a, ha⟩ => k a ha

/-! ## Classical logic -/

noncomputable def Classical.indefiniteDescription {α : Sort u} (p : α → Prop) (h : ∃ x, p x) : {x // p x} :=
  Classical.choice (match h with | ⟨x, hx⟩ => ⟨⟨x, hx⟩⟩)
noncomputable def Classical.choose {α : Sort u} {p : α → Prop} (h : ∃ x, p x) : α :=
  (Classical.indefiniteDescription p h).val
theorem Classical.choose_spec {α : Sort u} {p : α → Prop} (h : ∃ x, p x) : p (Classical.choose h) :=
  (Classical.indefiniteDescription p h).property
/-- Diaconescu: two sets that are equal as soon as `p` holds, and an element chosen from each. -/
theorem Classical.em (p : Prop) : p ∨ ¬p :=
  let A (b : Bool) : Prop := b = true ∨ p
  let B (b : Bool) : Prop := b = false ∨ p
  have hA : ∃ b, A b := ⟨true, .inl rfl⟩
  have hB : ∃ b, B b := ⟨false, .inl rfl⟩
  (Classical.choose_spec hA).elim
    (fun a => (Classical.choose_spec hB).elim
      (fun b => .inr fun hp =>
        have same : A = B := funext fun _ => propext ⟨fun _ => .inr hp, fun _ => .inr hp⟩
        have chosen : ∀ (C : Bool → Prop) (hC : ∃ b, C b), A = C → Classical.choose hA = Classical.choose hC :=
          fun C hC e => by subst e; rfl
        Bool.false_ne_true (b.symm.trans ((chosen B hB same).symm.trans a)))
      .inl)
    .inl
theorem Classical.byContradiction {p : Prop} (h : ¬p → False) : p :=
  (Classical.em p).elim id (fun no => (h no).elim)
theorem Classical.byCases {p q : Prop} (h : p → q) (k : ¬p → q) : q := (Classical.em p).elim h k
theorem Classical.not_not {p : Prop} : ¬¬p ↔ p := ⟨Classical.byContradiction, not_not_intro⟩
namespace Classical
noncomputable scoped instance (priority := 10) propDecidable (p : Prop) : Decidable p :=
  choice ((em p).elim (fun h => ⟨isTrue h⟩) (fun h => ⟨isFalse h⟩))
end Classical

/-! ## Decisions -/

theorem Decidable.em (p : Prop) [Decidable p] : p ∨ ¬p :=
  match (inferInstance : Decidable p) with
  | isTrue h => .inl h
  | isFalse h => .inr h
theorem Decidable.byContradiction {p : Prop} [Decidable p] (h : ¬p → False) : p :=
  (Decidable.em p).elim id (fun no => (h no).elim)
theorem Decidable.of_not_not {p : Prop} [Decidable p] (h : ¬¬p) : p := Decidable.byContradiction h
@[macro_inline] def Decidable.byCases {p : Prop} {q : Sort u} [h : Decidable p] (yes : p → q) (no : ¬p → q) :
    q :=
  dite p yes no
instance instDecidableAnd {p q : Prop} [hp : Decidable p] [hq : Decidable q] : Decidable (p ∧ q) :=
  match hp, hq with
  | isTrue a, isTrue b => isTrue ⟨a, b⟩
  | isTrue _, isFalse b => isFalse fun h => b h.2
  | isFalse a, _ => isFalse fun h => a h.1
instance instDecidableOr {p q : Prop} [hp : Decidable p] [hq : Decidable q] : Decidable (p ∨ q) :=
  match hp, hq with
  | isTrue a, _ => isTrue (.inl a)
  | isFalse _, isTrue b => isTrue (.inr b)
  | isFalse a, isFalse b => isFalse fun h => h.elim a b
instance instDecidableNot {p : Prop} [hp : Decidable p] : Decidable (¬p) :=
  match hp with
  | isTrue a => isFalse fun no => no a
  | isFalse a => isTrue a
instance instDecidableForall {p q : Prop} [hp : Decidable p] [hq : Decidable q] : Decidable (p → q) :=
  match hp, hq with
  | _, isTrue b => isTrue fun _ => b
  | isTrue a, isFalse b => isFalse fun h => b (h a)
  | isFalse a, isFalse _ => isTrue fun h => absurd h a
instance instDecidableIff {p q : Prop} [hp : Decidable p] [hq : Decidable q] : Decidable (p ↔ q) :=
  match hp, hq with
  | isTrue a, isTrue b => isTrue ⟨fun _ => b, fun _ => a⟩
  | isTrue a, isFalse b => isFalse fun h => b (h.1 a)
  | isFalse a, isTrue b => isFalse fun h => a (h.2 b)
  | isFalse a, isFalse b => isTrue ⟨fun h => absurd h a, fun h => absurd h b⟩
instance instDecidableEqBool : DecidableEq Bool
  | true, true => isTrue rfl
  | true, false => isFalse nofun
  | false, true => isFalse nofun
  | false, false => isTrue rfl

class Subsingleton (α : Sort u) : Prop where
  intro ::
  allEq (a b : α) : a = b
theorem Subsingleton.elim {α : Sort u} [h : Subsingleton α] (a b : α) : a = b := h.allEq a b
theorem Subsingleton.helim {α β : Sort u} [Subsingleton α] (h : α = β) (a : α) (b : β) : HEq a b := by
  subst h
  exact heq_of_eq (Subsingleton.elim a b)
instance instSubsingletonProp (p : Prop) : Subsingleton p := ⟨fun _ _ => rfl⟩
instance instSubsingletonDecidable (p : Prop) : Subsingleton (Decidable p) :=
  ⟨fun
    | isTrue _, isTrue _ => rfl
    | isFalse _, isFalse _ => rfl
    | isTrue yes, isFalse no => absurd yes no
    | isFalse no, isTrue yes => absurd yes no⟩

/-! ## What `simp` rewrites with -/

theorem of_eq_true {p : Prop} (h : p = True) : p := h ▸ True.intro
theorem of_eq_false {p : Prop} (h : p = False) : ¬p := fun hp => h ▸ hp
theorem eq_true {p : Prop} (h : p) : p = True := propext ⟨fun _ => trivial, fun _ => h⟩
theorem eq_false {p : Prop} (h : ¬p) : p = False := propext ⟨h, False.elim⟩
theorem eq_false' {p : Prop} (h : p → False) : p = False := eq_false h
theorem eq_true_of_decide {p : Prop} [Decidable p] (h : decide p = true) : p = True :=
  eq_true (of_decide_eq_true h)
theorem eq_false_of_decide {p : Prop} {_ : Decidable p} (h : decide p = false) : p = False :=
  eq_false (of_decide_eq_false h)
@[simp] theorem eq_self {α : Sort u} (a : α) : (a = a) = True := eq_true rfl
@[simp] theorem ne_eq {α : Sort u} (a b : α) : (a ≠ b) = ¬(a = b) := rfl
theorem implies_congr {p q : Sort u} {r s : Sort v} (h : p = q) (k : r = s) : (p → r) = (q → s) := h ▸ k ▸ rfl
theorem implies_congr_left {p q : Sort u} {r : Sort v} (h : p = q) : (p → r) = (q → r) := h ▸ rfl
theorem implies_congr_right {p : Sort u} {r s : Sort v} (h : r = s) : (p → r) = (p → s) := h ▸ rfl
theorem implies_dep_congr_ctx {p q r : Prop} (h : p = q) {s : q → Prop} (k : (hq : q) → r = s hq) :
    (p → r) = ((hq : q) → s hq) :=
  by
  subst h
  exact propext ⟨fun f hp => (k hp) ▸ f hp, fun f hp => (k hp) ▸ f hp⟩
theorem implies_congr_ctx {p q r s : Prop} (h : p = q) (k : q → r = s) : (p → r) = (q → s) :=
  implies_dep_congr_ctx h k
theorem forall_congr {α : Sort u} {p q : α → Prop} (h : ∀ a, p a = q a) : (∀ a, p a) = (∀ a, q a) :=
  (funext h : p = q) ▸ rfl
theorem forall_prop_domain_congr {p q : Prop} {r : p → Prop} {s : q → Prop} (h : p = q) (k : ∀ a : q, r (h.mpr_prop a) = s a) :
    (∀ a : p, r a) = (∀ a : q, s a) := by
  subst h
  exact forall_congr k
theorem forall_prop_congr_dom {p q : Prop} (h : p = q) (r : p → Prop) :
    (∀ a : p, r a) = (∀ a : q, r (h.mpr_prop a)) :=
  by
  subst h
  rfl
theorem let_congr {α : Sort u} {β : Sort v} {a b : α} {f g : α → β} (h : a = b) (k : ∀ x, f x = g x) : (let x := a; f x) = (let x := b; g x) :=
  h ▸ (funext k : f = g) ▸ rfl
theorem let_val_congr {α : Sort u} {β : Sort v} {a b : α} (f : α → β) (h : a = b) :
    (let x := a; f x) = (let x := b; f x) :=
  h ▸ rfl
theorem let_body_congr {α : Sort u} {β : α → Sort v} {f g : (a : α) → β a} (a : α) (k : ∀ x, f x = g x) : (let x := a; f x) = (let x := a; g x) :=
  (funext k : f = g) ▸ rfl

theorem ite_eq_left {c : Prop} {h : Decidable c} (hc : c) {α : Sort u} {t e : α} : ite c t e = t :=
  match h with
  | isTrue _ => rfl
  | isFalse no => absurd hc no
theorem ite_eq_right {c : Prop} {h : Decidable c} (hc : ¬c) {α : Sort u} {t e : α} : ite c t e = e :=
  match h with
  | isTrue yes => absurd yes hc
  | isFalse _ => rfl
theorem dite_eq_left {c : Prop} {h : Decidable c} (hc : c) {α : Sort u} {t : c → α} {e : ¬c → α} : dite c t e = t hc :=
  match h with
  | isTrue _ => rfl
  | isFalse no => absurd hc no
theorem dite_eq_right {c : Prop} {h : Decidable c} (hc : ¬c) {α : Sort u} {t : c → α} {e : ¬c → α} : dite c t e = e hc :=
  match h with
  | isTrue yes => absurd yes hc
  | isFalse _ => rfl
theorem if_pos {c : Prop} {h : Decidable c} (hc : c) {α : Sort u} {t e : α} : ite c t e = t := ite_eq_left hc
theorem if_neg {c : Prop} {h : Decidable c} (hc : ¬c) {α : Sort u} {t e : α} : ite c t e = e :=
  ite_eq_right hc
theorem dif_pos {c : Prop} {h : Decidable c} (hc : c) {α : Sort u} {t : c → α} {e : ¬c → α} :
    dite c t e = t hc :=
  dite_eq_left hc
theorem dif_neg {c : Prop} {h : Decidable c} (hc : ¬c) {α : Sort u} {t : c → α} {e : ¬c → α} :
    dite c t e = e hc :=
  dite_eq_right hc
@[simp] theorem ite_true {α : Sort u} (a b : α) : (if True then a else b) = a := rfl
@[simp] theorem ite_false {α : Sort u} (a b : α) : (if False then a else b) = b := rfl
theorem ite_eq_left_of_eq_true {α : Sort u} {c : Prop} {_ : Decidable c} (a b : α) (h : c = True) :
    (if c then a else b) = a :=
  ite_eq_left (of_eq_true h)
theorem ite_eq_right_of_eq_false {α : Sort u} {c : Prop} {_ : Decidable c} (a b : α) (h : c = False) :
    (if c then a else b) = b :=
  ite_eq_right (of_eq_false h)
theorem dite_eq_left_of_eq_true {α : Sort u} {c : Prop} {_ : Decidable c} {t : c → α} {e : ¬c → α} (h : c = True) : dite c t e = t (of_eq_true h) :=
  dite_eq_left _
theorem dite_eq_right_of_eq_false {α : Sort u} {c : Prop} {_ : Decidable c} {t : c → α} {e : ¬c → α} (h : c = False) : dite c t e = e (of_eq_false h) :=
  dite_eq_right _
@[congr] theorem ite_congr {α : Sort u} {b c : Prop} {x y u v : α} {s : Decidable b} [Decidable c] (h : b = c) (k : c → x = u) (l : ¬c → y = v) :
    ite b x y = ite c u v := by
  cases Decidable.em c with
  | inl hc => rw [ite_eq_left hc, ite_eq_left (h ▸ hc), k hc]
  | inr hc => rw [ite_eq_right hc, ite_eq_right (h ▸ hc), l hc]

@[simp] theorem and_true (p : Prop) : (p ∧ True) = p := propext ⟨And.left, fun h => ⟨h, trivial⟩⟩
@[simp] theorem true_and (p : Prop) : (True ∧ p) = p := propext ⟨And.right, fun h => ⟨trivial, h⟩⟩
@[simp] theorem and_false (p : Prop) : (p ∧ False) = False := eq_false And.right
@[simp] theorem false_and (p : Prop) : (False ∧ p) = False := eq_false And.left
@[simp] theorem and_self (p : Prop) : (p ∧ p) = p := propext ⟨And.left, fun h => ⟨h, h⟩⟩
@[simp] theorem or_true (p : Prop) : (p ∨ True) = True := eq_true (.inr trivial)
@[simp] theorem true_or (p : Prop) : (True ∨ p) = True := eq_true (.inl trivial)
@[simp] theorem or_false (p : Prop) : (p ∨ False) = p := propext ⟨fun h => h.resolve_right id, .inl⟩
@[simp] theorem false_or (p : Prop) : (False ∨ p) = p := propext ⟨fun h => h.resolve_left id, .inr⟩
@[simp] theorem or_self (p : Prop) : (p ∨ p) = p := propext ⟨fun h => h.elim id id, .inl⟩
@[simp] theorem iff_self (p : Prop) : (p ↔ p) = True := eq_true Iff.rfl
@[simp] theorem iff_true (p : Prop) : (p ↔ True) = p :=
  propext ⟨fun h => h.mpr trivial, fun h => iff_of_true h trivial⟩
@[simp] theorem true_iff (p : Prop) : (True ↔ p) = p := propext ⟨fun h => h.mp trivial, iff_of_true trivial⟩
@[simp] theorem iff_false (p : Prop) : (p ↔ False) = ¬p := propext ⟨Iff.mp, fun h => iff_of_false h id⟩
@[simp] theorem false_iff (p : Prop) : (False ↔ p) = ¬p := propext ⟨Iff.mpr, iff_of_false id⟩
@[simp] theorem implies_true (α : Sort u) : (α → True) = True := eq_true fun _ => trivial
@[simp] theorem true_implies (p : Prop) : (True → p) = p := propext ⟨fun h => h trivial, fun h _ => h⟩
@[simp] theorem false_implies (p : Prop) : (False → p) = True := eq_true False.elim
@[simp] theorem forall_const (α : Sort u) [i : Nonempty α] (p : Prop) : (α → p) = p :=
  propext ⟨fun h => i.rec h, fun h _ => h⟩
@[simp] theorem not_true_eq_false : (¬True) = False := eq_false (fun h => h trivial)
@[simp] theorem not_false_eq_true : (¬False) = True := eq_true id
theorem imp_self {p : Prop} : (p → p) ↔ True := iff_of_true id trivial

/-! ## Natural numbers -/

namespace Nat
@[simp] theorem add_zero (n : Nat) : n + 0 = n := rfl
theorem add_succ (n m : Nat) : n + succ m = succ (n + m) := rfl
theorem succ_eq_add_one (n : Nat) : succ n = n + 1 := rfl
@[simp] theorem zero_add (n : Nat) : 0 + n = n := by
  induction n with
  | zero => rfl
  | succ n ih => exact congrArg succ ih
theorem succ_add (n m : Nat) : succ n + m = succ (n + m) := by
  induction m with
  | zero => rfl
  | succ m ih => exact congrArg succ ih
theorem add_one (n : Nat) : n + 1 = succ n := rfl
theorem one_add (n : Nat) : 1 + n = succ n := by rw [succ_add, zero_add]
theorem add_comm (n m : Nat) : n + m = m + n := by
  induction m with
  | zero => exact (zero_add n).symm
  | succ m ih => rw [add_succ, succ_add, ih]
theorem add_assoc (n m k : Nat) : n + m + k = n + (m + k) := by
  induction k with
  | zero => rfl
  | succ k ih => exact congrArg succ ih
theorem add_left_comm (n m k : Nat) : n + (m + k) = m + (n + k) :=
  by rw [← add_assoc, add_comm n m, add_assoc]
theorem add_right_comm (n m k : Nat) : n + m + k = n + k + m := by rw [add_assoc, add_comm m k, add_assoc]
theorem succ.inj {n m : Nat} (h : succ n = succ m) : n = m := by injection h
theorem succ_inj {n m : Nat} : succ n = succ m ↔ n = m := ⟨succ.inj, congrArg succ⟩
theorem succ_ne_zero (n : Nat) : succ n ≠ 0 := nofun
theorem add_right_cancel {n m k : Nat} (h : n + m = k + m) : n = k := by
  induction m with
  | zero => exact h
  | succ m ih => exact ih (succ.inj h)
theorem add_left_cancel {n m k : Nat} (h : n + m = n + k) : m = k := by
  rw [add_comm n m, add_comm n k] at h
  exact add_right_cancel h
theorem eq_zero_of_add_eq_zero {n m : Nat} (h : n + m = 0) : n = 0 ∧ m = 0 := by
  cases m with
  | zero => exact ⟨h, rfl⟩
  | succ m => exact absurd h (succ_ne_zero _)

@[simp] theorem mul_zero (n : Nat) : n * 0 = 0 := rfl
theorem mul_succ (n m : Nat) : n * succ m = n * m + n := rfl
@[simp] theorem zero_mul (n : Nat) : 0 * n = 0 := by
  induction n with
  | zero => rfl
  | succ n ih => exact ih
theorem succ_mul (n m : Nat) : succ n * m = n * m + m := by
  induction m with
  | zero => rfl
  | succ m ih => rw [mul_succ, mul_succ, ih, add_succ, add_succ, add_right_comm]
@[simp] theorem mul_one (n : Nat) : n * 1 = n := zero_add n
@[simp] theorem one_mul (n : Nat) : 1 * n = n := by rw [succ_mul, zero_mul, zero_add]
theorem mul_comm (n m : Nat) : n * m = m * n := by
  induction m with
  | zero => exact (zero_mul n).symm
  | succ m ih => rw [mul_succ, succ_mul, ih]
theorem left_distrib (n m k : Nat) : n * (m + k) = n * m + n * k := by
  induction k with
  | zero => rfl
  | succ k ih => rw [add_succ, mul_succ, ih, mul_succ, add_assoc]
theorem mul_add (n m k : Nat) : n * (m + k) = n * m + n * k := left_distrib n m k
theorem right_distrib (n m k : Nat) : (n + m) * k = n * k + m * k := by
  rw [mul_comm, mul_add, mul_comm k n, mul_comm k m]
theorem add_mul (n m k : Nat) : (n + m) * k = n * k + m * k := right_distrib n m k
theorem mul_assoc (n m k : Nat) : n * m * k = n * (m * k) := by
  induction k with
  | zero => rfl
  | succ k ih => rw [mul_succ, mul_succ, ih, mul_add]
theorem mul_left_comm (n m k : Nat) : n * (m * k) = m * (n * k) :=
  by rw [← mul_assoc, mul_comm n m, mul_assoc]
theorem two_mul (n : Nat) : 2 * n = n + n := by rw [succ_mul, one_mul]
theorem mul_two (n : Nat) : n * 2 = n + n := by rw [mul_succ, mul_one]
@[simp] theorem pow_zero (n : Nat) : n ^ 0 = 1 := rfl
theorem pow_succ (n m : Nat) : n ^ succ m = n ^ m * n := rfl
theorem pow_two (n : Nat) : n ^ 2 = n * n := by rw [pow_succ, pow_succ, pow_zero, one_mul]
theorem pow_add (n m k : Nat) : n ^ (m + k) = n ^ m * n ^ k := by
  induction k with
  | zero => rw [add_zero, pow_zero, mul_one]
  | succ k ih => rw [add_succ, pow_succ, ih, pow_succ, mul_assoc]

@[simp] theorem sub_zero (n : Nat) : n - 0 = n := rfl
theorem sub_succ (n m : Nat) : n - succ m = pred (n - m) := rfl
@[simp] theorem zero_sub (n : Nat) : 0 - n = 0 := by
  induction n with
  | zero => rfl
  | succ n ih => rw [sub_succ, ih]; rfl
theorem succ_sub_succ (n m : Nat) : succ n - succ m = n - m := by
  induction m with
  | zero => rfl
  | succ m ih => rw [sub_succ, ih, sub_succ]
@[simp] theorem sub_self (n : Nat) : n - n = 0 := by
  induction n with
  | zero => rfl
  | succ n ih => rw [succ_sub_succ, ih]
@[simp] theorem add_sub_cancel (n m : Nat) : n + m - m = n := by
  induction m with
  | zero => rfl
  | succ m ih => rw [add_succ, succ_sub_succ, ih]

@[simp] theorem le_refl (n : Nat) : n ≤ n := le.refl
theorem le_succ (n : Nat) : n ≤ succ n := .step .refl
theorem le_trans {n m k : Nat} (h : n ≤ m) (l : m ≤ k) : n ≤ k := by
  induction l with
  | refl => exact h
  | step _ ih => exact .step ih
instance : Trans (fun n m : Nat => n ≤ m) (fun n m : Nat => n ≤ m) (fun n m : Nat => n ≤ m) := ⟨Nat.le_trans⟩
@[simp] theorem zero_le (n : Nat) : 0 ≤ n := by
  induction n with
  | zero => exact .refl
  | succ n ih => exact .step ih
theorem succ_le_succ {n m : Nat} (h : n ≤ m) : succ n ≤ succ m := by
  induction h with
  | refl => exact .refl
  | step _ ih => exact .step ih
theorem zero_lt_succ (n : Nat) : 0 < succ n := succ_le_succ (zero_le n)
theorem succ_pos (n : Nat) : 0 < succ n := zero_lt_succ n
theorem pred_le_pred {n m : Nat} (h : n ≤ m) : pred n ≤ pred m := by
  cases h with
  | refl => exact .refl
  | @step k h => exact le_trans (by cases n with | zero => exact .refl | succ n => exact le_succ n) h
theorem le_of_succ_le_succ {n m : Nat} (h : succ n ≤ succ m) : n ≤ m := pred_le_pred h
theorem succ_le_succ_iff {n m : Nat} : succ n ≤ succ m ↔ n ≤ m := ⟨le_of_succ_le_succ, succ_le_succ⟩
theorem not_succ_le_zero (n : Nat) : ¬succ n ≤ 0 := nofun
theorem not_lt_zero (n : Nat) : ¬n < 0 := not_succ_le_zero n
theorem not_succ_le_self (n : Nat) : ¬succ n ≤ n := by
  induction n with
  | zero => exact not_succ_le_zero 0
  | succ n ih => exact fun h => ih (le_of_succ_le_succ h)
theorem lt_irrefl (n : Nat) : ¬n < n := not_succ_le_self n
theorem lt_succ_self (n : Nat) : n < succ n := le_refl _
theorem le_of_lt {n m : Nat} (h : n < m) : n ≤ m := le_trans (le_succ n) h
theorem lt_of_lt_of_le {n m k : Nat} (h : n < m) (l : m ≤ k) : n < k := le_trans h l
theorem lt_of_le_of_lt {n m k : Nat} (h : n ≤ m) (l : m < k) : n < k := le_trans (succ_le_succ h) l
theorem lt_trans {n m k : Nat} (h : n < m) (l : m < k) : n < k := lt_of_lt_of_le h (le_of_lt l)
theorem le_of_eq {n m : Nat} (h : n = m) : n ≤ m := h ▸ le_refl n
theorem le_antisymm {n m : Nat} (h : n ≤ m) (l : m ≤ n) : n = m := by
  cases h with
  | refl => rfl
  | step h => exact absurd (le_trans l h) (not_succ_le_self _)
theorem le_total (n m : Nat) : n ≤ m ∨ m ≤ n := by
  induction n with
  | zero => exact .inl (zero_le m)
  | succ n ih =>
    cases ih with
    | inl h => cases h with
      | refl => exact .inr (le_succ _)
      | step h => exact .inl (succ_le_succ h)
    | inr h => exact .inr (.step h)
theorem lt_or_ge (n m : Nat) : n < m ∨ n ≥ m := by
  cases le_total n m with
  | inl h => cases h with
    | refl => exact .inr (le_refl _)
    | step h => exact .inl (succ_le_succ h)
  | inr h => exact .inr h
theorem lt_succ_of_le {n m : Nat} (h : n ≤ m) : n < succ m := succ_le_succ h
theorem le_of_lt_succ {n m : Nat} (h : n < succ m) : n ≤ m := le_of_succ_le_succ h
theorem le_add_right (n m : Nat) : n ≤ n + m := by
  induction m with
  | zero => exact le_refl n
  | succ m ih => exact .step ih
theorem le_add_left (n m : Nat) : n ≤ m + n := add_comm n m ▸ le_add_right n m
theorem add_le_add_right {n m : Nat} (h : n ≤ m) (k : Nat) : n + k ≤ m + k := by
  induction k with
  | zero => exact h
  | succ k ih => exact succ_le_succ ih
theorem add_le_add_left {n m : Nat} (h : n ≤ m) (k : Nat) : k + n ≤ k + m := by
  rw [add_comm k n, add_comm k m]
  exact add_le_add_right h k
theorem add_le_add {a b c d : Nat} (h : a ≤ b) (k : c ≤ d) : a + c ≤ b + d :=
  le_trans (add_le_add_right h c) (add_le_add_left k b)
theorem le.dest {n m : Nat} (h : n ≤ m) : ∃ k, n + k = m := by
  induction h with
  | refl => exact ⟨0, rfl⟩
  | step _ ih =>
    obtain ⟨k, hk⟩ := ih
    exact ⟨k + 1, congrArg succ hk⟩
theorem le.intro {n m k : Nat} (h : n + k = m) : n ≤ m := h ▸ le_add_right n k
theorem eq_zero_or_pos (n : Nat) : n = 0 ∨ 0 < n := by
  cases n with
  | zero => exact .inl rfl
  | succ n => exact .inr (zero_lt_succ n)

theorem le_of_ble_eq_true : (n m : Nat) → ble n m = true → n ≤ m
  | 0, m, _ => zero_le m
  | _ + 1, 0, h => (Bool.false_ne_true h).elim
  | n + 1, m + 1, h => succ_le_succ (le_of_ble_eq_true n m h)
theorem ble_self_eq_true (n : Nat) : ble n n = true := by
  induction n with
  | zero => rfl
  | succ n ih => exact ih
theorem ble_eq_true_of_le {n m : Nat} (h : n ≤ m) : ble n m = true := by
  have step : ∀ n m : Nat, ble n m = true → ble n (succ m) = true := by
    intro n
    induction n with
    | zero => intro m _; rfl
    | succ n ih =>
      intro m h
      cases m with
      | zero => exact (Bool.false_ne_true h).elim
      | succ m => exact ih m h
  induction h with
  | refl => exact ble_self_eq_true n
  | step _ ih => exact step _ _ ih
theorem not_le_of_not_ble_eq_true {n m : Nat} (h : ¬ble n m = true) : ¬n ≤ m :=
  fun l => h (ble_eq_true_of_le l)
@[extern "lean_nat_dec_le"]
instance decLe (n m : Nat) : Decidable (n ≤ m) :=
  Bool.decide (ble n m) (le_of_ble_eq_true n m) (fun h l => Bool.false_ne_true (h.symm.trans (ble_eq_true_of_le l)))
@[extern "lean_nat_dec_lt"]
instance decLt (n m : Nat) : Decidable (n < m) := decLe (succ n) m
theorem lt_or_eq_of_le {n m : Nat} (h : n ≤ m) : n < m ∨ n = m := by
  cases h with
  | refl => exact .inr rfl
  | step h => exact .inl (succ_le_succ h)
theorem not_le_of_gt {n m : Nat} (h : m < n) : ¬n ≤ m := fun l => lt_irrefl m (lt_of_lt_of_le h l)
theorem not_lt_of_ge {n m : Nat} (h : m ≤ n) : ¬n < m := fun l => lt_irrefl n (lt_of_lt_of_le l h)
theorem lt_of_not_ge {n m : Nat} (h : ¬m ≤ n) : n < m := (lt_or_ge n m).resolve_right h
theorem ne_of_lt {n m : Nat} (h : n < m) : n ≠ m := fun e => lt_irrefl m (e ▸ h)

/-! `induction` and `cases` show `0` and `n + 1`, not the constructors. -/

@[elab_as_elim, induction_eliminator]
protected def recAux {motive : Nat → Sort u} (zero : motive 0) (succ : (n : Nat) → motive n → motive (n + 1)) : (t : Nat) → motive t
  | 0 => zero
  | n + 1 => succ n (Nat.recAux zero succ n)
@[elab_as_elim, cases_eliminator]
protected def casesAuxOn {motive : Nat → Sort u} (t : Nat) (zero : motive 0) (succ : (n : Nat) → motive (n + 1)) : motive t :=
  match t with
  | 0 => zero
  | n + 1 => succ n

@[elab_as_elim]
protected noncomputable def strongRecOn {motive : Nat → Sort u} (n : Nat) (ind : (n : Nat) → ((m : Nat) → m < n → motive m) → motive n) :
    motive n :=
  have below : (k m : Nat) → m < k → motive m := fun k =>
    Nat.recAux (fun _ h => absurd h (not_lt_zero _)) (fun _ ih m h => ind m fun j hj => ih j (lt_of_lt_of_le hj (le_of_lt_succ h))) k
  below (n + 1) n (lt_succ_self n)

/-! The kernel's other functions on literals. -/

def divModFuel : (fuel n m : Nat) → Nat × Nat
  | 0, n, _ => (0, n)
  | fuel + 1, n, m =>
    match m, ble m n with
    | 0, _ => (0, n)
    | _ + 1, false => (0, n)
    | _ + 1, true => match divModFuel fuel (n - m) m with | (q, r) => (q + 1, r)
@[extern "lean_nat_div"] protected def div (n m : Nat) : Nat := (divModFuel n n m).1
@[extern "lean_nat_mod"] protected def mod (n m : Nat) : Nat := (divModFuel n n m).2
instance instDivNat : Div Nat := ⟨Nat.div⟩
instance instModNat : Mod Nat := ⟨Nat.mod⟩
def gcdFuel : (fuel n m : Nat) → Nat
  | 0, _, m => m
  | _ + 1, 0, m => m
  | fuel + 1, n + 1, m => gcdFuel fuel (m % (n + 1)) (n + 1)
@[extern "lean_nat_gcd"] def gcd (n m : Nat) : Nat := gcdFuel n n m
def bitwiseFuel (f : Bool → Bool → Bool) : (fuel n m : Nat) → Nat
  | 0, _, m => cond (f false true) m 0
  | _ + 1, 0, m => cond (f false true) m 0
  | _ + 1, n + 1, 0 => cond (f true false) (n + 1) 0
  | fuel + 1, n + 1, m + 1 =>
    2 * bitwiseFuel f fuel ((n + 1) / 2) ((m + 1) / 2) + cond (f (beq ((n + 1) % 2) 1) (beq ((m + 1) % 2) 1)) 1 0
def bitwise (f : Bool → Bool → Bool) (n m : Nat) : Nat := bitwiseFuel f n n m
@[extern "lean_nat_land"] def land : Nat → Nat → Nat := bitwise and
@[extern "lean_nat_lor"] def lor : Nat → Nat → Nat := bitwise or
@[extern "lean_nat_lxor"] def xor : Nat → Nat → Nat := bitwise bne
@[extern "lean_nat_shiftl"] def shiftLeft : Nat → Nat → Nat
  | n, 0 => n
  | n, m + 1 => shiftLeft (2 * n) m
@[extern "lean_nat_shiftr"] def shiftRight : Nat → Nat → Nat
  | n, 0 => n
  | n, m + 1 => shiftRight n m / 2
def log2Fuel : (fuel n : Nat) → Nat
  | 0, _ => 0
  | fuel + 1, n => cond (ble 2 n) (log2Fuel fuel (n / 2) + 1) 0
@[extern "lean_nat_log2"] def log2 (n : Nat) : Nat := log2Fuel n n
end Nat

/-! ## Booleans, pairs, options -/

@[simp] theorem Bool.not_not (b : Bool) : (!!b) = b := by cases b <;> rfl
@[simp] theorem Bool.and_true (b : Bool) : (b && true) = b := by cases b <;> rfl
@[simp] theorem Bool.true_and (b : Bool) : (true && b) = b := rfl
@[simp] theorem Bool.and_false (b : Bool) : (b && false) = false := by cases b <;> rfl
@[simp] theorem Bool.false_and (b : Bool) : (false && b) = false := rfl
@[simp] theorem Bool.or_false (b : Bool) : (b || false) = b := by cases b <;> rfl
@[simp] theorem Bool.or_true (b : Bool) : (b || true) = true := by cases b <;> rfl
theorem Bool.and_comm (a b : Bool) : (a && b) = (b && a) := by cases a <;> cases b <;> rfl
theorem Bool.or_comm (a b : Bool) : (a || b) = (b || a) := by cases a <;> cases b <;> rfl
theorem Prod.ext {α : Type u} {β : Type v} : {p q : α × β} → p.1 = q.1 → p.2 = q.2 → p = q
  | (_, _), (_, _), rfl, rfl => rfl
def Prod.swap {α : Type u} {β : Type v} (p : α × β) : β × α := (p.2, p.1)
def Option.map {α : Type u} {β : Type v} (f : α → β) : Option α → Option β
  | none => none
  | some a => some (f a)

/-! ## Lists -/

namespace List
variable {α : Type u} {β : Type v}
def length : List α → Nat
  | [] => 0
  | _ :: l => l.length + 1
protected def append : List α → List α → List α
  | [], k => k
  | a :: l, k => a :: l.append k
instance instAppendList : Append (List α) := ⟨List.append⟩
def reverse : List α → List α
  | [] => []
  | a :: l => l.reverse ++ [a]
def map (f : α → β) : List α → List β
  | [] => []
  | a :: l => f a :: l.map f
def foldr (f : α → β → β) (init : β) : List α → β
  | [] => init
  | a :: l => f a (l.foldr f init)
inductive Mem (a : α) : List α → Prop where
  | head (l : List α) : Mem a (a :: l)
  | tail (b : α) {l : List α} : Mem a l → Mem a (b :: l)
instance instMembershipList : Membership α (List α) := ⟨fun l a => Mem a l⟩

@[simp] theorem length_nil : ([] : List α).length = 0 := rfl
@[simp] theorem length_cons (a : α) (l : List α) : (a :: l).length = l.length + 1 := rfl
@[simp] theorem nil_append (l : List α) : [] ++ l = l := rfl
@[simp] theorem cons_append (a : α) (l k : List α) : (a :: l) ++ k = a :: (l ++ k) := rfl
@[simp] theorem append_nil (l : List α) : l ++ [] = l := by
  induction l with
  | nil => rfl
  | cons a l ih => rw [cons_append, ih]
theorem append_assoc (l k m : List α) : l ++ k ++ m = l ++ (k ++ m) := by
  induction l with
  | nil => rfl
  | cons a l ih => rw [cons_append, cons_append, cons_append, ih]
@[simp] theorem length_append (l k : List α) : (l ++ k).length = l.length + k.length := by
  induction l with
  | nil => rw [nil_append, length_nil, Nat.zero_add]
  | cons a l ih => rw [cons_append, length_cons, length_cons, ih, Nat.succ_add]
@[simp] theorem reverse_nil : ([] : List α).reverse = [] := rfl
@[simp] theorem reverse_cons (a : α) (l : List α) : (a :: l).reverse = l.reverse ++ [a] := rfl
@[simp] theorem reverse_append (l k : List α) : (l ++ k).reverse = k.reverse ++ l.reverse := by
  induction l with
  | nil => rw [nil_append, reverse_nil, append_nil]
  | cons a l ih => rw [cons_append, reverse_cons, ih, reverse_cons, append_assoc]
@[simp] theorem reverse_reverse (l : List α) : l.reverse.reverse = l := by
  induction l with
  | nil => rfl
  | cons a l ih => rw [reverse_cons, reverse_append, ih]; rfl
@[simp] theorem length_reverse (l : List α) : l.reverse.length = l.length := by
  induction l with
  | nil => rfl
  | cons a l ih => rw [reverse_cons, length_append, ih]; rfl
@[simp] theorem map_nil (f : α → β) : map f [] = [] := rfl
@[simp] theorem map_cons (f : α → β) (a : α) (l : List α) : map f (a :: l) = f a :: map f l := rfl
@[simp] theorem length_map (f : α → β) (l : List α) : (map f l).length = l.length := by
  induction l with
  | nil => rfl
  | cons a l ih => rw [map_cons, length_cons, length_cons, ih]
@[simp] theorem map_append (f : α → β) (l k : List α) : map f (l ++ k) = map f l ++ map f k := by
  induction l with
  | nil => rfl
  | cons a l ih => rw [cons_append, map_cons, ih, map_cons, cons_append]

theorem not_mem_nil (a : α) : ¬a ∈ ([] : List α) := nofun
@[simp] theorem mem_nil_eq (a : α) : (a ∈ ([] : List α)) = False := eq_false (not_mem_nil a)
@[simp] theorem mem_cons {a b : α} {l : List α} : a ∈ b :: l ↔ a = b ∨ a ∈ l :=
  ⟨fun | .head _ => .inl rfl | .tail _ h => .inr h, fun h => h.elim (fun e => e ▸ .head l) (.tail b)⟩
theorem mem_append {a : α} {l k : List α} : a ∈ l ++ k ↔ a ∈ l ∨ a ∈ k := by
  induction l with
  | nil => simp
  | cons b l ih => simp only [cons_append, mem_cons, ih, or_assoc]
end List
