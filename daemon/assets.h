/*
 * assets.h - files of page/ as embed.cmake puts them into the program. Those of uPlot are empty when it was not there
 * (scripts/get-uplot.sh): the page then shows tables without plots.
 */
#ifndef TSLABD_ASSETS_H
#define TSLABD_ASSETS_H

#include <stddef.h>

struct asset {
    const unsigned char* bytes;
    size_t size;
};

extern const struct asset asset_index_html, asset_page_js, asset_page_css, asset_icon_svg, asset_uplot_js,
    asset_uplot_css;

#endif
