// Package k6html is the JavaScript module "k6/html": parseHTML, and selections
// of elements in the manner of jQuery.
package k6html
