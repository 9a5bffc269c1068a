(* HOL Light step, inside: the gate for the text of a tactic, and the judge of what it proves.

   Loaded behind the library into the image, so all that it refers to was bound before any submission was
   read. A fork calls `judge` once. The syntax is HOL Light's own, in which a word of capitals is a value. *)

module Farm = struct

open Parsetree;;

(* Why a text is not run, or not a proof: a word for the farm, a line and column in the text, a sentence. *)
exception Ended of string * (int * int) * string;;

let nowhere = 0,0;;

let ended word place said = raise (Ended(word,place,said));;

(* The text begins on the second line of the phrase; what is outside of it has no place. *)
let placed line column = if line > 1 then line - 1,max 0 column else nowhere;;

let place loc =
  let start = loc.Location.loc_start in
  placed start.Lexing.pos_lnum (start.Lexing.pos_cnum - start.Lexing.pos_bol);;

(* --- Which values a tactic may name. --- *)

(* Values of these types can be computed, compared and taken apart, and that is all. *)
let harmless_types =
  ["term"; "hol_type"; "thm"; "goal"; "goalstate"; "tactic"; "thm_tactic"; "thm_tactical"; "conv"; "refinement";
   "justification"; "instantiation"; "list"; "option"; "string"; "int"; "bool"; "char"; "num"; "func"; "net"];;

(* What makes theorems of anything, or changes the theory, or what later text means: a proof needs none. *)
let acting_names =
  ["mk_thm"; "CHEAT_TAC"; "new_axiom"; "exit"; "raise"; "invalid_arg"; "string_of_file"; "strings_of_file"];;

let acting_beginnings =
  ["new_"; "define"; "override"; "overload"; "reduce_"; "remove_"; "set_"; "install"; "delete"; "load"; "the_";
   "parse_as"; "unparse"; "prioritize"; "hide"; "unhide"; "make_overloadable"; "prove_inductive"; "prove_recursive";
   "prove_general"; "lift_"; "add_"; "extend_"; "unsafe"; "print"; "pp_"; "read"; "input"; "output"; "open";
   "close"; "save"; "run"; "file"; "use_"; "needs"; "search"; "help"; "inductive_"; "farm"];;

let begins_with prefix name =
  String.length name >= String.length prefix &&
  String.sub name 0 (String.length prefix) = prefix;;

let acts name =
  List.mem name acting_names || List.exists (fun p -> begins_with p name) acting_beginnings;;

let is_harmless path =
  match path with
    Path.Pident _ -> List.mem (Path.last path) harmless_types
  | _ -> Path.name path = "Num.num";;

let rec harmless ty =
  match (Ctype.repr ty).Types.desc with
    Types.Tvar _ -> true
  | Types.Tarrow(Asttypes.Nolabel,a,b,_) -> harmless a && harmless b
  | Types.Ttuple l -> List.for_all harmless l
  | Types.Tconstr(path,args,_) -> is_harmless path && List.for_all harmless args
  | _ -> false;;

let variables ty = List.map Ctype.repr (Ctype.free_variables ty);;

(* What returns a value of any type returns none, or is a cast. *)
let rec casts given ty =
  let result = Ctype.repr ty in
  match result.Types.desc with
    Types.Tarrow(_,a,b,_) -> casts (variables a @ given) b
  | Types.Tvar _ -> not (List.memq result given)
  | _ -> false;;

let allowed : (string,unit) Hashtbl.t = Hashtbl.create 4096;;

Env.fold_values
  (fun name _ value () ->
     let ty = value.Types.val_type in
     if name = "failwith" || (harmless ty && not (casts [] ty) && not (acts name))
     then Hashtbl.replace allowed name () else ())
  None !Toploop.toplevel_env ();;

(* --- The gate: of OCaml's syntax, what applies functions to values and binds names. --- *)

let refused loc what =
  ended "refused" (place loc) ("The proof "^what^".");;

let plain loc attributes =
  if attributes <> [] then refused loc "has an attribute" else ();;

let constructors = ["::"; "[]"; "()"; "true"; "false"; "Some"; "None"];;

let rec typ t =
  plain t.ptyp_loc t.ptyp_attributes;
  match t.ptyp_desc with
    Ptyp_any | Ptyp_var _ -> ()
  | Ptyp_arrow(Asttypes.Nolabel,a,b) -> typ a; typ b
  | Ptyp_tuple l -> List.iter typ l
  | Ptyp_constr({Asttypes.txt = Longident.Lident _},args) -> List.iter typ args
  | _ -> refused t.ptyp_loc "has a type of a kind that no tactic needs";;

(* Return the names that a pattern binds, in front of those that are bound. *)
let rec pattern bound p =
  plain p.ppat_loc p.ppat_attributes;
  match p.ppat_desc with
    Ppat_any | Ppat_constant _ -> bound
  | Ppat_var name -> name.Asttypes.txt::bound
  | Ppat_alias(q,name) -> name.Asttypes.txt::pattern bound q
  | Ppat_tuple l -> List.fold_left pattern bound l
  | Ppat_construct({Asttypes.txt = Longident.Lident _},None) -> bound
  | Ppat_construct({Asttypes.txt = Longident.Lident _},Some([],q)) -> pattern bound q
  | Ppat_or(q,r) -> pattern (pattern bound q) r
  | Ppat_constraint(q,t) -> typ t; pattern bound q
  | _ -> refused p.ppat_loc "has a pattern of a kind that no tactic needs";;

let rec expr bound e =
  plain e.pexp_loc e.pexp_attributes;
  match e.pexp_desc with
    Pexp_constant _ -> ()
  | Pexp_ident name -> ident bound e.pexp_loc name.Asttypes.txt
  | Pexp_let(recursive,bindings,body) ->
      let inside = List.fold_left (fun b v -> pattern b v.pvb_pat) bound bindings in
      let own = if recursive = Asttypes.Recursive then inside else bound in
      List.iter (fun v -> plain v.pvb_loc v.pvb_attributes; expr own v.pvb_expr) bindings;
      expr inside body
  | Pexp_fun(Asttypes.Nolabel,None,p,body) -> expr (pattern bound p) body
  | Pexp_function cases -> List.iter (case bound) cases
  | Pexp_match(what,cases) | Pexp_try(what,cases) -> expr bound what; List.iter (case bound) cases
  | Pexp_apply(f,args) -> expr bound f; List.iter (argument bound e.pexp_loc) args
  | Pexp_tuple l -> List.iter (expr bound) l
  | Pexp_construct({Asttypes.txt = Longident.Lident name},given) when List.mem name constructors ->
      optional bound given
  | Pexp_construct _ -> refused e.pexp_loc "makes a value of a type that is not its own"
  | Pexp_ifthenelse(a,b,c) -> expr bound a; expr bound b; optional bound c
  | Pexp_sequence(a,b) -> expr bound a; expr bound b
  | Pexp_constraint(a,t) -> typ t; expr bound a
  | _ -> refused e.pexp_loc "has an expression of a kind that no tactic needs"

and optional bound given =
  match given with Some e -> expr bound e | None -> ()

and argument bound loc (label,e) =
  if label <> Asttypes.Nolabel then refused loc "gives an argument by its label" else expr bound e

and case bound c =
  let inside = pattern bound c.pc_lhs in
  optional inside c.pc_guard; expr inside c.pc_rhs

and ident bound loc name =
  match name with
    Longident.Lident n ->
      if List.mem n bound || Hashtbl.mem allowed n then () else unknown loc n
  | _ -> refused loc ("names "^String.concat "." (Longident.flatten name)^", which is in a module: tactics may not")

and unknown loc n =
  if n = "CHEAT_TAC" || n = "mk_thm" || n = "new_axiom"
  then ended "axiom" (place loc) ("The proof names "^n^", which makes a theorem of anything.") else
  match Env.find_value_by_name (Longident.Lident n) !Toploop.toplevel_env with
    exception Not_found -> ended "error" (place loc) ("Unbound value "^n)
  | _ -> refused loc ("names "^n^", which does more than a tactic may");;

(* --- The text of a tactic. --- *)

let not_one = "is not exactly one expression";;

(* Return the next phrase of a stream, None at its end. *)
let parsed stream =
  match Grammar.Entry.parse Pcaml.top_phrase stream with
    exception Ploc.Exc(loc,why) ->
      let said = match why with Stream.Error m -> m | Failure m -> m | _ -> Printexc.to_string why in
      ended "error" (placed (Ploc.line_nb loc) (Ploc.first_pos loc - Ploc.bol_pos loc)) ("Syntax error: "^said)
  | None -> None
  | Some item -> try Some(Ast2pt.phrase item) with Failure m -> ended "error" nowhere ("Syntax error: "^m);;

let one_phrase text =
  let wrapped = "let farm_tactic = (\n"^text^"\n);;" in
  let stream = Stream.of_string wrapped in
  match parsed stream with
    Some phrase when Stream.count stream = String.length wrapped -> phrase
  | _ -> ended "refused" nowhere ("The proof "^not_one^".");;

(* Whether nothing but blanks and comments stands in a text. *)
let is_blank text =
  match parsed (Stream.of_string text) with
    None -> true
  | Some _ -> false
  | exception _ -> false;;

(* Return white space that takes as many lines, and columns of the last one, as a text; one line more. *)
let blanks text =
  let lines = String.split_on_char '\n' text in
  String.make (List.length lines) '\n'^String.make (String.length (List.nth lines (List.length lines - 1))) ' ';;

(* Return the phrases of a text, the last of which need not have its `;;`; none where the first cannot be read. *)
let phrases_of text =
  let rec from at found =
    let rest = String.sub text at (String.length text - at) in
    if is_blank rest then List.rev found else
    let before = blanks (String.sub text 0 at) in
    let stream = Stream.of_string (before^rest^"\n;;") in
    match parsed stream with
      exception _ when found = [] -> []
    | None -> List.rev found
    | Some phrase ->
        let next = at + Stream.count stream - String.length before in
        if next >= String.length text then List.rev (phrase::found) else from next (phrase::found) in
  from 0 [];;

(* --- The usual form of a proof: lemmas, and steps of the interactive prover, become one tactic. --- *)

let unjoined loc why =
  ended "error" (place loc) ("The phrases of the proof cannot be joined into one tactic: "^why^".");;

let ident_of name = Ast_helper.Exp.ident (Location.mknoloc (Longident.Lident name));;

let apply_to f x = Ast_helper.Exp.apply f [Asttypes.Nolabel,x];;

(* Return the function that an expression applies, "" for none, and its arguments. *)
let called e =
  match e.pexp_desc with
    Pexp_apply({pexp_desc = Pexp_ident {Asttypes.txt = Longident.Lident f}},args) -> f,List.map snd args
  | _ -> "",[];;

(* What was read so far: the bindings, the goal and the steps that are open, and the proofs that were found,
   each with the bindings before it and its goal; the newest first. `kind` is the kind of numbers. *)
type reading =
  { bindings : (Asttypes.rec_flag * value_binding list) list;
    opened : expression option;
    steps : expression list;
    found : ((Asttypes.rec_flag * value_binding list) list * expression option * expression) list;
    kind : string };;

let nothing_read = { bindings = []; opened = None; steps = []; found = []; kind = "" };;

(* Return the tactic that takes these steps one after the other, each as a function of goal states. *)
let tactic_of_steps steps =
  let start = apply_to (ident_of "mk_goalstate") (ident_of "farm_goal") in
  let last = List.fold_left (fun state step -> apply_to step state) start (List.rev steps) in
  Ast_helper.Exp.fun_ Asttypes.Nolabel None (Ast_helper.Pat.var (Location.mknoloc "farm_goal")) last;;

(* End the steps that are open: they are a proof of their goal. *)
let closed r =
  if r.steps = [] then r else
  { r with steps = []; opened = None; found = (r.bindings,r.opened,tactic_of_steps r.steps)::r.found };;

let with_proof r goal tactic = { r with found = (r.bindings,Some goal,tactic)::r.found };;

let with_binding r recursive bindings = { r with bindings = (recursive,bindings)::r.bindings };;

let prioritized r loc name =
  if r.kind <> name && (r.bindings <> [] || r.steps <> [] || r.found <> [] || r.kind <> "")
  then unjoined loc (name^" changes what terms behind it mean; write it in front, or the types in the terms") else
  (if name = "prioritize_real" then prioritize_real() else
   if name = "prioritize_int" then prioritize_int() else prioritize_num());
  { r with kind = name };;

let ends_with suffix text =
  let m = String.length suffix and n = String.length text in
  m <= n && String.sub text (n - m) m = suffix;;

let loaded r loc file =
  if List.exists (fun (known,_) -> ends_with file known) !loaded_files then r else
  unjoined loc ("it loads "^file^", which the environment has not loaded; name the file in its `load`");;

(* Return what is read when an expression stands as a phrase of its own. *)
let with_expression r e =
  match called e with
    "g",[goal] -> { (closed r) with opened = Some goal }
  | ("e" | "er"),[tactic] -> { r with steps = apply_to (ident_of "by") tactic::r.steps }
  | "r",[number] -> { r with steps = apply_to (ident_of "rotate") number::r.steps }
  | "b",[_] when r.steps <> [] -> { r with steps = List.tl r.steps }
  | ("p" | "top_goal" | "top_thm" | "top_realgoal"),[_] -> r
  | ("prioritize_real" | "prioritize_num" | "prioritize_int" as name),[_] -> prioritized r e.pexp_loc name
  | ("needs" | "loadt" | "loads"),[{pexp_desc = Pexp_constant(Pconst_string(file,_,_))}] -> loaded r e.pexp_loc file
  | "prove",[{pexp_desc = Pexp_tuple [goal;tactic]}] -> with_proof (closed r) goal tactic
  | _ -> let c = closed r in { c with found = (c.bindings,None,e)::c.found };;

let with_let r recursive bindings =
  match bindings with
    [v] ->
      (match called v.pvb_expr with
         "top_thm",[_] ->
           (match r.opened with
              None when r.steps = [] -> unjoined v.pvb_loc "top_thm() stands behind no step"
            | None -> closed r
            | Some goal ->
                let proof = Ast_helper.Exp.tuple [goal;tactic_of_steps r.steps] in
                with_binding (closed r) recursive [{ v with pvb_expr = apply_to (ident_of "prove") proof }])
       | "prove",[{pexp_desc = Pexp_tuple [goal;tactic]}] ->
           with_binding (with_proof (closed r) goal tactic) recursive bindings
       | _ -> with_binding r recursive bindings)
  | _ -> with_binding r recursive bindings;;

let with_item r item =
  match item.pstr_desc with
    Pstr_eval(e,attributes) -> plain item.pstr_loc attributes; with_expression r e
  | Pstr_value(recursive,bindings) -> with_let r recursive bindings
  | _ -> unjoined item.pstr_loc "one of them is neither an expression nor a `let`";;

let with_phrase r phrase =
  match phrase with
    Ptop_def items -> List.fold_left with_item r items
  | Ptop_dir _ -> ended "error" nowhere "The phrases of the proof cannot be joined: one is a directive of the toplevel.";;

(* Whether an expression is a quotation of a goal. *)
let states goal given =
  match given with
    None -> false
  | Some e ->
      match called e with
        "parse_term",[{pexp_desc = Pexp_constant(Pconst_string(text,_,_))}] ->
          (match parse_term text with t -> aconv t goal | exception _ -> false)
      | _ -> false;;

(* Return the phrase of the proof of a goal: the last one that states it, or the last one that there is. *)
let joined goal phrases =
  let r = closed (List.fold_left with_phrase nothing_read phrases) in
  let chosen = match List.filter (fun (_,stated,_) -> states goal stated) r.found with [] -> r.found | l -> l in
  match chosen with
    [] -> ended "error" nowhere "The proof has no tactic: no `prove(...)`, no `e(...)` and no expression."
  | (bindings,_,tactic)::_ ->
      let whole = List.fold_left (fun body (recursive,l) -> Ast_helper.Exp.let_ recursive l body) tactic bindings in
      let named = Ast_helper.Pat.var (Location.mknoloc "farm_tactic") in
      Ptop_def [Ast_helper.Str.value Asttypes.Nonrecursive [Ast_helper.Vb.mk named whole]];;

(* Return the phrase of a text: of one expression, else of the phrases that it has, if it can be read so. *)
let phrase_of goal text =
  match one_phrase text with
    phrase -> phrase
  | exception (Ended _ as why) ->
      match phrases_of text with
        [] -> raise why
      | phrases -> joined goal phrases;;

let tactic_type = Ast_helper.Typ.constr (Location.mknoloc (Longident.Lident "tactic")) [];;
let unit_pattern = Ast_helper.Pat.construct (Location.mknoloc (Longident.Lident "()")) None;;

(* Return what the phrase binds, as a function that has yet to be called. *)
let guarded phrase =
  match phrase with
    Ptop_def [{pstr_desc = Pstr_value(Asttypes.Nonrecursive,[binding])}] ->
      (match binding.pvb_pat.ppat_desc with
         Ppat_var {Asttypes.txt = "farm_tactic"} when binding.pvb_attributes = [] ->
           expr [] binding.pvb_expr;
           let typed = Ast_helper.Exp.constraint_ binding.pvb_expr tactic_type in
           let body = Ast_helper.Exp.fun_ Asttypes.Nolabel None unit_pattern typed in
           Ptop_def [Ast_helper.Str.value Asttypes.Nonrecursive [Ast_helper.Vb.mk binding.pvb_pat body]]
       | _ -> ended "refused" nowhere ("The proof "^not_one^"."))
  | _ -> ended "refused" nowhere ("The proof "^not_one^".");;

let said_by print =
  let buffer = Buffer.create 200 in
  let formatter = Format.formatter_of_buffer buffer in
  Format.pp_set_margin formatter 1000; print formatter; Format.pp_print_flush formatter (); Buffer.contents buffer;;

let ill_typed why =
  match why with
    Typecore.Error(loc,env,error) ->
      let main = (Typecore.report_error ~loc:loc env error).Location.main in
      ended "error" (place main.Location.loc) (said_by main.Location.txt)
  | _ -> ended "error" nowhere (said_by (fun formatter -> Location.report_exception formatter why));;

let tactic_of goal text =
  let phrase = guarded (phrase_of goal text) in
  (match Toploop.execute_phrase false Format.str_formatter phrase with
     true -> ()
   | false -> ended "error" nowhere "the text has no value"
   | exception (Ended _ as e) -> raise e
   | exception why -> ill_typed why);
  (Obj.obj (Toploop.getvalue "farm_tactic") : unit -> tactic);;

(* --- The goal. --- *)

let in_one_line s =
  let words = String.split_on_char ' ' (String.map (fun c -> if c = '\n' || c = '\t' then ' ' else c) s) in
  String.concat " " (List.filter (fun w -> w <> "") words);;

let shown t = "`"^in_one_line (string_of_term t)^"`";;

let names l = String.concat ", " (List.map (fun v -> fst (dest_var v)) l);;

let is_invented ty = begins_with "?" (dest_vartype ty);;

let goal_of text =
  let bad said = ended "bad_challenge" nowhere said in
  let goal = try parse_term text with Failure m -> bad m | why -> bad (Printexc.to_string why) in
  if type_of goal <> bool_ty
  then bad ("its type is "^string_of_type (type_of goal)^"; state a term of type bool.") else
  if frees goal <> []
  then bad ("nothing binds "^names (frees goal)^": quantify, or load the file that defines it.") else
  if List.exists is_invented (type_vars_in_term goal)
  then bad "it leaves types open: write them, as in `!x:num. ...`." else goal;;

(* --- The judge. --- *)

let theory () = axioms(),definitions(),constants(),types();;

let before = theory();;

let unsolved goals =
  let one (asl,w) =
    shown w^(if asl = [] then "" else " where "^String.concat ", " (List.map (fun (_,th) -> shown (concl th)) asl)) in
  let rec some n l = match l with [] -> [] | g::rest -> if n = 0 then ["..."] else one g::some (n - 1) rest in
  "unsolved goals: "^string_of_int (List.length goals)^"; "^String.concat "\n" (some 8 goals);;

let proof goal tactic =
  let _,goals,justify = by (tactic()) (mk_goalstate ([],goal)) in
  match goals with
    [] -> justify null_inst []
  | _ -> ended "error" nowhere (unsolved goals);;

let proved goal tactic =
  let failed said = ended "error" nowhere said in
  match proof goal tactic with
    exception (Ended _ as e) -> raise e
  | exception Failure m -> failed m
  | exception Out_of_memory -> ended "memory" nowhere "out of memory"
  | exception Stack_overflow -> failed "stack overflow"
  | exception why -> failed (Printexc.to_string why)
  | th -> th;;

let compared goal th =
  let axioms,definitions,constants,types = theory() in
  let axioms',definitions',constants',types' = before in
  if axioms != axioms' && axioms <> axioms'
  then ended "axiom" nowhere "The proof adds an axiom." else
  if definitions <> definitions' || constants <> constants' || types <> types'
  then ended "refused" nowhere "The proof changes the theory: it defines a constant or a type." else
  if hyp th <> []
  then ended "statement_mismatch" nowhere ("The theorem rests on a hypothesis: "^shown (hd (hyp th))^".") else
  if not (aconv (concl th) goal)
  then ended "statement_mismatch" nowhere ("What was proved is another statement: "^shown (concl th)^".") else ();;

let named_axioms =
  let named th =
    if th = ETA_AX then "ETA_AX" else if th = SELECT_AX then "SELECT_AX" else
    if th = INFINITY_AX then "INFINITY_AX" else shown (concl th) in
  String.concat "\n" (List.rev_map named (axioms()));;

let told word (line,column) said =
  word^"\n"^string_of_int line^" "^string_of_int column^"\n"^said;;

(* Judge one tactic: the goal, a NUL, the text. Returns a word, a place and what is to be said, on lines. *)
let judge asked =
  try
    let at = String.index asked '\000' in
    let goal = goal_of (String.sub asked 0 at) in
    let tactic = tactic_of goal (String.sub asked (at + 1) (String.length asked - at - 1)) in
    compared goal (proved goal tactic);
    told "proved" nowhere named_axioms
  with Ended(word,at,said) -> told word at said
     | Out_of_memory -> told "memory" nowhere "out of memory"
     | Stack_overflow -> told "error" nowhere "The text is too deep: stack overflow."
     | why -> told "error" nowhere (Printexc.to_string why);;

let version = "HOL Light "^hol_version^" on OCaml "^Sys.ocaml_version;;

end;;

type_invention_warning := false;;
Warnings.parse_options false "-a";;

(* A proof grows for a moment: collecting what is shared with the image would copy all of it. *)
Gc.compact();;
Gc.set { (Gc.get()) with Gc.space_overhead = 1000 };;

(* What hol.ml loads last: a library that was loaded in part lacks it. *)
if length (axioms()) = 3 && mem "PCROSS_UNIONS" (map fst !theorems)
then (Callback.register "farm_version" Farm.version; Callback.register "farm_judge" Farm.judge) else ();;
