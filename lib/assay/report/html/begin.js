'use strict';

// A long table would be laid out again with each part of it that arrives: page.js shows it at once.
document.documentElement.classList.add('arriving');
