// Package landing knows the code of modules, as their files have it: its functions,
// and all places that control may come to other than from the instruction before.
//
// The latter is what whoever displaces several instructions at once has to know:
// branches lead there, by their own displacements, by jump tables, or by addresses
// that are kept in data or taken by instructions. Places that are reckoned too
// many do no harm, one too few would: so all bytes are looked at, whatever they
// are. What no table tells is an address that hand-written code computes; such
// code takes the address of a place of its own function first (see
// Module.TakesOwn).
//
// A Catalog may be used from any goroutine; what it returns never changes. Only
// omis/linux and omis/place/kernel may import it.
package landing
