// Package plot draws charts of lines over logarithmic or linear axes, as SVG that a
// browser shows in light and dark alike. Nothing in it measures anything.
//
// Only packages below bench import it.
package plot
