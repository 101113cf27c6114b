//go:build linux && amd64

package library

import (
	"debug/dwarf"

	"mirador/omis/host/prototype"
)

// deepest is the number of nested pointers that convert follows.
const deepest = 4

// convert translates a type of debug information.
func convert(t dwarf.Type, depth int) prototype.Type {
	size := int(t.Common().ByteSize)
	number := func(signed, char bool) prototype.Type {
		if size > 8 { // __int128 takes two registers
			return prototype.Type{Kind: prototype.Aggregate, Size: size, Eights: []prototype.Class{prototype.ClassInteger, prototype.ClassInteger}}
		}
		return prototype.Type{Kind: prototype.Integer, Size: size, Signed: signed, Char: char}
	}
	switch t := t.(type) {
	case *dwarf.TypedefType:
		return convert(t.Type, depth)
	case *dwarf.QualType:
		return convert(t.Type, depth)
	case *dwarf.IntType:
		return number(true, false)
	case *dwarf.UintType, *dwarf.BoolType:
		return number(false, false)
	case *dwarf.EnumType:
		return number(true, false)
	case *dwarf.CharType:
		return number(true, size == 1)
	case *dwarf.UcharType:
		return number(false, size == 1)
	case *dwarf.FloatType:
		return prototype.Type{Kind: prototype.Floating, Size: size}
	case *dwarf.ComplexType, *dwarf.StructType, *dwarf.ArrayType:
		return prototype.Type{Kind: prototype.Aggregate, Size: size, Eights: classify(t)}
	case *dwarf.PtrType:
		if depth >= deepest {
			return prototype.PointerTo(prototype.Type{})
		}
		return prototype.PointerTo(convert(t.Type, depth+1))
	case *dwarf.VoidType:
		return prototype.Type{}
	case *dwarf.FuncType, *dwarf.DotDotDotType:
		return prototype.Type{Kind: prototype.Aggregate}
	}
	// Among others, references and pointers to members of C++.
	return prototype.PointerTo(prototype.Type{Kind: prototype.Aggregate})
}

// classify returns the classes of the registers that hold an aggregate, nil if it is
// passed in memory (System V ABI for x86-64, 3.2.3).
func classify(t dwarf.Type) []prototype.Class {
	size := t.Common().ByteSize
	if size <= 0 || size > 16 {
		return nil
	}
	classes := make([]prototype.Class, (size+7)/8)
	if !classifyAt(t, 0, classes) {
		return nil
	}
	for i, c := range classes {
		if c != 0 {
			continue
		}
		if i == 0 {
			return nil // empty
		}
		classes[i] = prototype.ClassVector // padding
	}
	return classes
}

func classifyAt(t dwarf.Type, offset int64, classes []prototype.Class) (inRegisters bool) {
	size := t.Common().ByteSize
	class := prototype.ClassInteger
	switch t := t.(type) {
	case *dwarf.TypedefType:
		return classifyAt(t.Type, offset, classes)
	case *dwarf.QualType:
		return classifyAt(t.Type, offset, classes)
	case *dwarf.StructType:
		for _, f := range t.Field {
			if f.BitSize > 0 {
				mark(classes, offset+f.ByteOffset+f.DataBitOffset/8, prototype.ClassInteger)
				continue
			}
			if !classifyAt(f.Type, offset+f.ByteOffset, classes) {
				return false
			}
		}
		return true
	case *dwarf.ArrayType:
		step := t.Type.Size()
		for at := int64(0); step > 0 && at+step <= size; at += step {
			if !classifyAt(t.Type, offset+at, classes) {
				return false
			}
		}
		return true
	case *dwarf.FloatType:
		if size > 8 {
			return false // the x87's registers hold no aggregates
		}
		class = prototype.ClassVector
	case *dwarf.ComplexType:
		class = prototype.ClassVector
		for at := offset; at < offset+size; at += 8 {
			mark(classes, at, class)
		}
		return true
	}
	if size > 0 && size <= 8 && offset%size != 0 {
		return false // a packed structure
	}
	for at := offset; at < offset+size; at += 8 {
		mark(classes, at, class)
	}
	return true
}

// mark merges a class into the class of the eight bytes at an offset, which is integer if
// any of them is.
func mark(classes []prototype.Class, offset int64, c prototype.Class) {
	i := offset / 8
	if offset < 0 || i >= int64(len(classes)) {
		return
	}
	if classes[i] == 0 || c == prototype.ClassInteger {
		classes[i] = c
	}
}
