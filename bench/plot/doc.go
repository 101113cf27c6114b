// Package plot draws charts of lines over logarithmic axes as SVG, which a browser shows
// in light or dark colours. It measures nothing.
//
// Only packages below bench import it.
package plot
