// Package grammar finds the units and regions of C, C++ and Java sources, with the parsers of tree-sitter.
//
// Its parsers are generated C code, which reads whatever a file contains: programs that must not end
// read sources in a process of their own. The package imports sir and the outline of files. It starts no
// goroutines, and its functions may be called concurrently for different files.
package grammar

import (
	"sync"
	"unsafe"

	treesitter "github.com/tree-sitter/go-tree-sitter"
	c "github.com/tree-sitter/tree-sitter-c/bindings/go"
	cpp "github.com/tree-sitter/tree-sitter-cpp/bindings/go"
	java "github.com/tree-sitter/tree-sitter-java/bindings/go"
)

// language is a grammar and what is interesting of its syntax.
type language struct {
	grammar *treesitter.Language
	roles   []role   // of symbols
	symbols []uint8  // which of them are copied
	fields  []uint8  // the same of fields
	named   []string // names of fields
	java    bool
	cpp     bool
}

// role is what a node of a syntax tree means.
type role uint8

const (
	none      role = iota
	statement      // without a region of its own
	braces         // a list of statements
	function
	method
	class
	namespace
	lambda
	loopFor
	loopRange
	loopWhile
	loopDo
	ifStatement
	elseClause
	switchStatement
	switchCase
	switchRule // case X ->
	switchLabel
	call
	methodCall
	create
	destroy
	returns
	throws
	try
	catch
	finally
	synchronized
	pragma
	include
	conditional // of the preprocessor
	otherBranch
	linkage
	storage
	functionDeclarator
	pointerDeclarator
	declaration
	label
	jump
	leave     // the loop or switch
	repeat    // the loop
	packaging // the package of a file
	parameter
	initializer // of a class
	definition  // of a macro
	skipped
	template
)

// roles are the roles of all three grammars, by the names of symbols.
var roles = map[string]role{
	"function_definition": function, "method_declaration": method, "constructor_declaration": method, "compact_constructor_declaration": method,
	"class_specifier": class, "struct_specifier": class, "union_specifier": class, "class_declaration": class, "interface_declaration": class,
	"enum_declaration": class, "record_declaration": class, "annotation_type_declaration": class,
	"namespace_definition": namespace, "lambda_expression": lambda, "static_initializer": initializer,
	"for_statement": loopFor, "for_range_loop": loopRange, "enhanced_for_statement": loopRange, "while_statement": loopWhile, "do_statement": loopDo,
	"if_statement": ifStatement, "else_clause": elseClause, "switch_statement": switchStatement, "switch_expression": switchStatement,
	"case_statement": switchCase, "switch_block_statement_group": switchCase, "switch_rule": switchRule, "switch_label": switchLabel,
	"call_expression": call, "method_invocation": methodCall, "explicit_constructor_invocation": call,
	"new_expression": create, "object_creation_expression": create, "array_creation_expression": create, "delete_expression": destroy,
	"return_statement": returns, "co_return_statement": returns, "throw_statement": throws,
	"try_statement": try, "try_with_resources_statement": try, "catch_clause": catch, "finally_clause": finally, "synchronized_statement": synchronized,
	"preproc_call": pragma, "preproc_include": include, "preproc_if": conditional, "preproc_ifdef": conditional,
	"preproc_else": otherBranch, "preproc_elif": otherBranch, "preproc_elifdef": otherBranch, "preproc_def": definition, "preproc_function_def": definition,
	"template_declaration": template, "linkage_specification": linkage, "storage_class_specifier": storage, "function_declarator": functionDeclarator, "pointer_declarator": pointerDeclarator,
	"declaration": declaration, "parameter_declaration": parameter, "formal_parameter": parameter, "spread_parameter": parameter,
	"labeled_statement": label, "goto_statement": jump, "break_statement": leave, "continue_statement": repeat, "package_declaration": packaging,
	"compound_statement": braces, "block": braces, "constructor_body": braces, "expression_statement": statement, "local_variable_declaration": statement, "yield_statement": statement,
	"annotation": skipped, "marker_annotation": skipped, "class_body": statement, "translation_unit": statement, "program": statement,
}

// whole are the symbols whose inside is not interesting.
var whole = map[string]bool{
	"comment": true, "line_comment": true, "block_comment": true, "string_literal": true, "raw_string_literal": true, "preproc_call": true, "preproc_include": true, "preproc_def": true,
	"preproc_function_def": true, "storage_class_specifier": true, "package_declaration": true, "break_statement": true, "continue_statement": true, "import_declaration": true, "annotation": true, "marker_annotation": true,
}

// interesting are the fields whose nodes are copied, whatever their symbols.
var interesting = []string{
	"declarator", "function", "parameters", "body", "name", "object", "condition", "consequence", "alternative", "initializer", "init", "right", "value", "update", "label", "type", "scope",
}

var languages = map[string]func() *language{
	"c":    sync.OnceValue(func() *language { return newLanguage(c.Language()) }),
	"c++":  sync.OnceValue(func() *language { l := newLanguage(cpp.Language()); l.cpp = true; return l }),
	"java": sync.OnceValue(func() *language { l := newLanguage(java.Language()); l.java = true; return l }),
}

func newLanguage(grammar unsafe.Pointer) *language {
	l := &language{grammar: treesitter.NewLanguage(grammar)}
	n := l.grammar.NodeKindCount()
	l.roles, l.symbols = make([]role, n), make([]uint8, n)
	for i := range n {
		if name := l.grammar.NodeKindForId(uint16(i)); l.grammar.NodeKindIsNamed(uint16(i)) {
			if l.roles[i] = roles[name]; l.roles[i] != none {
				l.symbols[i] = 1
			}
			if whole[name] && l.symbols[i] == 1 {
				l.symbols[i] = 2
			}
		}
	}
	l.fields = make([]uint8, l.grammar.FieldCount()+1)
	l.named = make([]string, len(l.fields))
	for _, name := range interesting {
		if id := l.grammar.FieldIdForName(name); id != 0 {
			l.fields[id], l.named[id] = 1, name
		}
	}
	return l
}
